/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - native stacks of living ranks, by elfutils: the thread is stopped while it is read. */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <unistd.h>

#include "recover.h"
#include "status.h"

#define FRAMES_MAX 64

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
};

static int add_frame(Dwfl_Frame *frame, void *data)
{
    GPtrArray *stack = data;
    Dwarf_Addr pc;
    bool is_call;
    if (!dwfl_frame_pc(frame, &pc, &is_call))
        return DWARF_CB_ABORT;
    Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(frame));
    Dwfl_Module *module = dwfl_addrmodule(dwfl, pc - is_call);
    const char *name = module ? dwfl_module_addrname(module, pc - is_call) : NULL;
    const char *file =
        module ? dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;
    g_autofree gchar *base = file ? g_path_get_basename(file) : g_strdup("?");
    g_ptr_array_add(stack, name ? g_strdup_printf("%s (%s)", name, base)
                                : g_strdup_printf("0x%" G_GINT64_MODIFIER "x (%s)", pc, base));
    return stack->len < FRAMES_MAX ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* The thread that is in the rank's call, else its first. */
static pid_t thread_of(const RsStatus *s, guint32 rank)
{
    const RsModel *m = s->model;
    guint32 call = s->ranks[rank].call;
    if (call == RS_NONE)
        return (pid_t)rs_model_rank(m, rank)->pid;
    return (pid_t)g_array_index(m->tracks, RsTrack, rs_model_track_of(m, call)).tid;
}

/* NULL, and why, where the system does not allow it. */
static GPtrArray *read_stack(pid_t pid, pid_t tid, const char **ret_why)
{
    GPtrArray *stack = g_ptr_array_new_with_free_func(g_free);
    Dwfl *dwfl = dwfl_begin(&callbacks);
    int error = dwfl ? dwfl_linux_proc_report(dwfl, pid) : ENOMEM;
    gboolean good = error == 0 && dwfl_report_end(dwfl, NULL, NULL) == 0;
    if (good && (error = dwfl_linux_proc_attach(dwfl, pid, false)) == 0)
        dwfl_getthread_frames(dwfl, tid, add_frame, stack);
    *ret_why = error > 0 ? g_strerror(error) : dwfl_errmsg(-1);
    if (dwfl)
        dwfl_end(dwfl);
    if (stack->len)
        return stack;
    g_ptr_array_unref(stack);
    return NULL;
}

void rs_status_read_stacks(RsStatus *s)
{
    const RsModel *m = s->model;
    for (guint32 i = 0; i < m->ranks->len; i++) {
        const RsRank *r = rs_model_rank(m, i);
        const char *why = "its process is not on this host, or ended";
        if (r->ending == RS_ENDING_RUNNING && rs_process_lives(r->pid, 0))
            s->ranks[i].stack = read_stack((pid_t)r->pid, thread_of(s, i), &why);
        if (!s->ranks[i].stack && !s->no_stacks)
            s->no_stacks = g_strdup_printf("none of rank %d, and perhaps of others: %s", r->rank,
                                           why ? why : "unknown");
    }
}
