/* SPDX-License-Identifier: Apache-2.0 */
/* The tracer's core, linked in, written to and killed; the analyzer reads what it left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "merge.h"
#include "ops-numbers.h"
#include "report/report.h"
#include "run.h"
#include "state.h"

#define THREADS 3

static gchar *folder;

static void record(uint16_t op, uint32_t comm, uint32_t seq, uint64_t count)
{
    struct rs_thread *t = rs_thread_if_recording();
    if (!t)
        return;
    uint64_t start = rs_call_enter(t, op, comm, seq, -1, count, 0);
    uint64_t end = rs_call_leave(t);
    if (!rs_room(t, 1))
        return;
    struct rs_event *e = rs_slot(t, 0);
    *e = (struct rs_event){.op = op, .peer = -1, .start = start, .end = end, .count = count};
    e->comm = comm;
    e->seq = seq;
    rs_commit(t, 1);
}

/* Runs `work` in a child with a capture of its own below `name`; returns its wait status. */
static int in_child(const char *name, void (*work)(void))
{
    pid_t pid = fork();
    if (pid == 0) {
        g_snprintf(rs_env.dir, sizeof(rs_env.dir), "%s/%s", folder, name);
        work();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static RsModel *read_run(const char *name)
{
    g_autofree gchar *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) error = NULL;
    const gchar *paths[] = {path, NULL};
    RsModel *m = rs_run_open(paths, NULL, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    return m;
}

static guint count_named(const RsModel *m, const char *name)
{
    guint n = 0;
    for (guint32 i = 0; i < m->events.n; i++)
        n += g_str_equal(rs_model_str(m, rs_model_sig(m, i)->name), name);
    return n;
}

static struct rs_comm *world(void)
{
    static const int32_t members[] = {0};
    rs_core->set_rank(0, 1);
    rs_core->define_op(RS_OP_MPI_Barrier);
    rs_core->define_op(RS_OP_MPI_Allreduce);
    return rs_core->define_comm(RS_COMM_MPI, 0x1234, 77, 0, 0, 1, members, -1, "world");
}

/* ---- a process that ends ---- */

static gpointer record_many(gpointer data)
{
    for (uint32_t i = 0; i < 1000; i++)
        record(RS_OP_MPI_Barrier, GPOINTER_TO_UINT(data), i, 0);
    return NULL;
}

static void record_on_threads(void)
{
    struct rs_comm *c = world();
    GThread *threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        threads[i] = g_thread_new("work", record_many, GUINT_TO_POINTER(c->id));
    for (int i = 0; i < THREADS; i++)
        g_thread_join(threads[i]);
    record(RS_OP_MPI_Allreduce, c->id, 5000, 12345);
}

static void end_afterThreads_keepsEveryEvent(void **state)
{
    assert_int_equal(in_child("threads", record_on_threads), 0);
    g_autoptr(RsModel) m = read_run("threads");
    assert_int_equal(count_named(m, "MPI_Barrier"), THREADS * 1000);
    assert_int_equal(count_named(m, "MPI_Allreduce"), 1);
    assert_int_equal(m->dropped, 0);
    assert_false(m->incomplete);
    assert_int_equal(rs_model_rank(m, 0)->rank, 0);
    assert_int_equal(rs_model_rank(m, 0)->ending, RS_ENDING_CLEAN);
    g_autofree char *format =
        g_strdup_printf("ringscope capture %d.%d", RS_FORMAT_MAJOR, RS_FORMAT_MINOR);
    assert_string_equal(g_hash_table_lookup(m->meta, "0/format"), format);
}

static guint64 cost(const RsModel *m, const char *key)
{
    g_autofree gchar *name = g_strdup_printf("0/cost.%s", key);
    const gchar *text = g_hash_table_lookup(m->meta, name);
    assert_non_null(text);
    return g_ascii_strtoull(text, NULL, 10);
}

static void end_ofACapture_saysWhatItCost(void **state)
{
    assert_int_equal(in_child("cost", record_on_threads), 0);
    g_autoptr(RsModel) m = read_run("cost");
    GStatBuf st;
    assert_int_equal(g_stat(rs_model_str(m, rs_model_rank(m, 0)->path), &st), 0);
    assert_int_equal(cost(m, "events"), THREADS * 1000 + 1);
    assert_int_equal(cost(m, "dropped"), 0);
    assert_in_range(cost(m, "bytes"), st.st_size - 512, st.st_size - 1);
    assert_in_range(cost(m, "event_ns"), 1, 100000);
    cost(m, "drain_ns"); /* 0 where it did not run yet */
    RsReport report = {.model = m, .name = "x"};
    RsTracing t = rs_report_tracing(&report);
    assert_true(t.event_ns >= 1);
    assert_true(t.total_ns >= t.event_ns * (THREADS * 1000 + 1));
    assert_true(t.percent > 0);
}

/* ---- one that is killed inside a call ---- */

static void die_in_a_call(void)
{
    struct rs_comm *c = world();
    for (uint32_t i = 0; i < 50; i++)
        record(RS_OP_MPI_Barrier, c->id, i, 0);
    struct rs_thread *t = rs_thread_if_recording();
    rs_call_enter(t, RS_OP_MPI_Allreduce, c->id, 50, -1, 4096, 0);
    kill(getpid(), SIGKILL);
}

static void kill_insideACall_leavesEventsAndTheCall(void **state)
{
    int status = in_child("killed", die_in_a_call);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    g_autofree gchar *path = g_build_filename(folder, "killed", NULL);
    g_autoptr(GError) error = NULL;
    const RsMerge merge = {.path = path, .formats = "sqlite"};
    g_autoptr(RsModel) merged = rs_merge(&merge, NULL, &error);
    if (!merged) /* appends what the rings hold, and removes them */
        fail_msg("%s", error->message);
    g_autoptr(RsModel) m = read_run("killed"); /* both captures and run.sqlite stand there */
    assert_int_equal(count_named(m, "MPI_Barrier"), 50);
    const RsRank *r = rs_model_rank(m, 0);
    assert_int_not_equal(r->open_event, RS_NONE);
    assert_string_equal(rs_model_str(m, rs_model_sig(m, r->open_event)->name), "MPI_Allreduce");
    assert_true(m->incomplete);
}

/* ---- a ring that nobody drains ---- */

static void overflow(void)
{
    struct rs_comm *c = world();
    record(RS_OP_MPI_Barrier, c->id, 0, 0);
    rs_lock(); /* the writer waits */
    for (uint32_t i = 1; i < 40000; i++)
        record(RS_OP_MPI_Barrier, c->id, i, 0);
    uint64_t dropped = rs_self->ring->dropped;
    rs_unlock();
    while (__atomic_load_n(&rs_self->ring->tail, __ATOMIC_ACQUIRE) < rs_self->head)
        sched_yield();
    record(RS_OP_MPI_Allreduce, c->id, 40000, dropped);
}

static void room_ofAFullRing_dropsAndRecordsTheHole(void **state)
{
    assert_int_equal(in_child("full", overflow), 0);
    g_autoptr(RsModel) m = read_run("full");
    guint kept = count_named(m, "MPI_Barrier"), holes = 0;
    guint64 lost = 0, counted = 0;
    for (guint32 i = 0; i < m->events.n; i++) {
        const RsSig *s = rs_model_sig(m, i);
        if (s->kind == RS_KIND_HOLE) {
            holes++;
            lost += s->count;
        }
        if (g_str_equal(rs_model_str(m, s->name), "MPI_Allreduce"))
            counted = s->count;
    }
    assert_true(kept < 40000);
    assert_int_equal(holes, 1);
    assert_int_equal(lost, 40000 - kept);
    assert_int_equal(counted, lost);
    assert_int_equal(m->dropped, lost);
}

/* A number of a process that left rings is given again: its capture tells them apart. */
static guint count_rings(const gchar *path_prefix)
{
    g_autofree gchar *prefix = g_strconcat(strrchr(path_prefix, '/') + 1, ".", NULL);
    g_autoptr(GDir) d = g_dir_open("/dev/shm", 0, NULL);
    guint n = 0;
    for (const gchar *name; d && (name = g_dir_read_name(d));)
        n += g_str_has_prefix(name, prefix);
    return n;
}

/* ---- a capture that is full ---- */

#define LIMIT ((uint64_t)128 << 10)

static uint32_t *recorded_so_far; /* of the events that go past it, as the parent sees it too */

static void go_past_the_limit(void)
{
    rs_env.size_limit = LIMIT;
    struct rs_comm *c = world();
    for (uint32_t i = 0; i < 20000; i++) {
        record(RS_OP_MPI_Barrier, c->id, i, 0);
        *recorded_so_far = i + 1;
        if (i % 1000 == 999)
            rs_core->flush(RS_END_FINALIZE);
    }
}

/* ---- one that keeps the newest ---- */

static enum { LIVE_ON, DIE_BEFORE, DIE_AFTER, DIE_COPYING, FAIL } death;
static unsigned renames; /* until then */

int rename(const char *from, const char *to)
{
    if (death == FAIL) {
        errno = EIO;
        return -1;
    }
    if (death == DIE_BEFORE && renames-- == 0)
        kill(getpid(), SIGKILL);
    int result = renameat(AT_FDCWD, from, AT_FDCWD, to);
    if (death == DIE_AFTER && renames-- == 0)
        kill(getpid(), SIGKILL);
    return result;
}

ssize_t sendfile(int out, int in, off_t *at, size_t bytes)
{
    static unsigned copies;
    if (death == DIE_COPYING && copies++ == 3 * renames)
        kill(getpid(), SIGKILL);
    return syscall(SYS_sendfile, out, in, at, bytes / 2 + 1);
}

static void keep_the_newest(void)
{
    rs_env.keep_last = true;
    go_past_the_limit();
    rs_life_end(RS_END_EXIT);
}

/* Of 20000 events, or those until it died, the newest are there, without a gap. */
static void check_newest(const char *name, bool ended)
{
    g_autoptr(RsModel) m = read_run(name);
    guint kept = 0, holes = 0;
    guint64 lost = 0;
    for (guint32 i = 0; i < m->events.n; i++) {
        const RsSig *s = rs_model_sig(m, i);
        holes += s->kind == RS_KIND_HOLE;
        lost += s->kind == RS_KIND_HOLE ? s->count : 0;
        if (!g_str_equal(rs_model_str(m, s->name), "MPI_Barrier"))
            continue;
        assert_int_equal(m->events.seq[i], lost + kept); /* in order, as they were made */
        kept++;
    }
    assert_int_equal(m->dropped, lost);
    if (ended)
        assert_int_equal(kept + lost, 20000);
    else
        assert_in_range(kept + lost, *recorded_so_far,
                        *recorded_so_far + 1); /* it died before it counted */
    if (lost) {
        assert_int_equal(holes, 1);
        assert_in_range(kept, LIMIT / sizeof(struct rs_event) / 4, 20000);
    }
    for (guint i = 0; i < m->warnings->len; i++) {
        const RsWarning *w = g_ptr_array_index(m->warnings, i);
        assert_null(strstr(w->text, "block"));
    }
    GStatBuf st;
    assert_int_equal(g_stat(rs_model_str(m, rs_model_rank(m, 0)->path), &st), 0);
    assert_true((guint64)st.st_size < LIMIT * 2);
    assert_int_equal(m->clock_trusted, TRUE);
}

static void limit_ofACaptureThatKeepsTheLast_holdsTheNewest(void **state)
{
    assert_int_equal(in_child("last-end", keep_the_newest), 0);
    check_newest("last-end", true);
}

/* It isn't a limit otherwise: the disk would fill. */
static void limit_ofACaptureThatCannotBeWrittenAgain_holdsAll(void **state)
{
    death = FAIL;
    assert_int_equal(in_child("last-fails", keep_the_newest), 0);
    death = LIVE_ON;
    g_autoptr(RsModel) m = read_run("last-fails");
    GStatBuf st;
    assert_int_equal(g_stat(rs_model_str(m, rs_model_rank(m, 0)->path), &st), 0);
    assert_in_range(st.st_size, LIMIT, LIMIT * 4 + 4096);
    assert_int_equal(count_named(m, "MPI_Barrier") + m->dropped, 20000);
    assert_non_null(g_hash_table_lookup(m->meta, "0/off.keep"));
}

/* Its folder goes while it is written: nobody will read it, and the disk has its room again. */
static void record_into_a_removed_capture(void)
{
    struct rs_comm *c = world();
    record(RS_OP_MPI_Barrier, c->id, 0, 0);
    rs_core->flush(RS_END_FINALIZE);
    assert_int_equal(unlink(rs_writer_path()), 0);
    record(RS_OP_MPI_Barrier, c->id, 1, 0);
    rs_core->flush(RS_END_FINALIZE);
    assert_int_equal(*rs_core->on, 0);
    struct stat before, after;
    assert_int_equal(fstat(rs_state.fd, &before), 0);
    rs_life_end(RS_END_EXIT);
    assert_int_equal(fstat(rs_state.fd, &after), 0);
    assert_int_equal(after.st_size, before.st_size);
    assert_int_equal(count_rings(rs_state.control->prefix), 0);
}

static void capture_thatIsRemoved_isWrittenNoMore(void **state)
{
    assert_int_equal(in_child("removed", record_into_a_removed_capture), 0);
}

static void check_death(unsigned way, unsigned when)
{
    g_autofree gchar *name = g_strdup_printf("last-%u-%u", way, when);
    death = way;
    renames = when;
    int status = in_child(name, keep_the_newest);
    death = LIVE_ON;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check_newest(name, false); /* from the rings */
    g_autofree gchar *path = g_build_filename(folder, name, NULL);
    g_autoptr(GError) error = NULL;
    const RsMerge merge = {.path = path, .formats = "sqlite"};
    g_autoptr(RsModel) merged = rs_merge(&merge, NULL, &error);
    if (!merged)
        fail_msg("%s", error->message);
    assert_int_equal(count_rings(g_hash_table_lookup(merged->meta, "0/ring.prefix")), 0);
    check_newest(name, false); /* from the file */
    g_autoptr(GDir) d = g_dir_open(path, 0, NULL);
    for (const gchar *file; (file = g_dir_read_name(d));)
        assert_false(g_str_has_suffix(file, ".new"));
}

static void death_whileACaptureIsWrittenAgain_losesNothing(void **state)
{
    for (unsigned when = 0; when < 3; when++) {
        check_death(DIE_BEFORE, when);
        check_death(DIE_AFTER, when);
        check_death(DIE_COPYING, when);
    }
}

static void go_past_and_end(void)
{
    go_past_the_limit();
    rs_life_end(RS_END_EXIT);
}

/* A thread that is gone when the process ends leaves its hole, too. */
static void go_past_on_threads(void)
{
    rs_env.size_limit = LIMIT;
    struct rs_comm *c = world();
    for (int i = 0; i < 8; i++) {
        GThread *t = g_thread_new("work", record_many, GUINT_TO_POINTER(c->id));
        g_thread_join(t);
        rs_core->flush(RS_END_FINALIZE);
        while (rs_state.threads)
            g_usleep(1000);
    }
    rs_life_end(RS_END_EXIT);
}

static void go_past_and_die(void)
{
    go_past_the_limit();
    struct rs_thread *t = rs_thread_if_recording();
    rs_lock(); /* no drain comes between */
    for (uint32_t i = 0; i < 50; i++)
        record(RS_OP_MPI_Barrier, 0, i, 0);
    rs_call_enter(t, RS_OP_MPI_Allreduce, 0, 0, -1, 4096, 0);
    kill(getpid(), SIGKILL);
}

static void check_full(const char *name, guint recorded, guint holes_expected)
{
    g_autoptr(RsModel) m = read_run(name);
    guint kept = count_named(m, "MPI_Barrier"), holes = 0;
    guint64 lost = 0;
    for (guint32 i = 0; i < m->events.n; i++) {
        const RsSig *s = rs_model_sig(m, i);
        if (s->kind != RS_KIND_HOLE)
            continue;
        assert_string_equal(rs_model_str(m, s->name), RS_HOLE_LIMIT);
        assert_true(m->events.end_ns[i] > m->events.start_ns[i]);
        lost += s->count;
        holes++;
    }
    assert_in_range(kept, LIMIT / sizeof(struct rs_event) / 2, LIMIT / sizeof(struct rs_event));
    assert_int_equal(kept + lost, recorded);
    assert_int_equal(m->dropped, lost);
    assert_in_range(holes, 1, holes_expected);
    assert_string_equal(g_hash_table_lookup(m->meta, "0/limit.reached"), "131072");
    GStatBuf st;
    assert_int_equal(g_stat(rs_model_str(m, rs_model_rank(m, 0)->path), &st), 0);
    assert_true((uint64_t)st.st_size < LIMIT + 16384); /* and what closes it */
}

static void limit_ofTheCapture_leavesOutWhatFollows(void **state)
{
    assert_int_equal(in_child("full-end", go_past_and_end), 0);
    check_full("full-end", 20000, 1);
    assert_int_equal(in_child("full-threads", go_past_on_threads), 0);
    check_full("full-threads", 8000, 8);
}

static void limit_ofTheCaptureOfAKilledProcess_countsEachEventOnce(void **state)
{
    int status = in_child("full-killed", go_past_and_die);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check_full("full-killed", 20050, 1); /* from the rings */
    g_autofree gchar *path = g_build_filename(folder, "full-killed", NULL);
    g_autoptr(GError) error = NULL;
    const RsMerge merge = {.path = path, .formats = "sqlite"};
    g_autoptr(RsModel) merged = rs_merge(&merge, NULL, &error);
    assert_non_null(merged);
    check_full("full-killed", 20050, 1); /* from the file */
}

/* ---- handles ---- */

static void use_a_handle_again(void)
{
    struct rs_comm *a = world();
    uint32_t epoch = *rs_core->epoch;
    assert_ptr_equal(rs_core->find_comm(RS_COMM_MPI, 0x1234), a);
    assert_null(rs_core->find_comm(RS_COMM_NCCL, 0x1234));
    rs_core->forget_comm(RS_COMM_MPI, 0x1234);
    assert_null(rs_core->find_comm(RS_COMM_MPI, 0x1234));
    assert_int_not_equal(*rs_core->epoch, epoch);
    struct rs_comm *b = rs_core->define_comm(RS_COMM_MPI, 0x1234, 78, 77, 0, 1, NULL, -1, NULL);
    assert_int_not_equal(a->id, b->id);
    assert_ptr_equal(rs_core->find_comm(RS_COMM_MPI, 0x1234), b);
    uint32_t s = rs_core->string("text", 4);
    assert_int_equal(rs_core->string("text and more", 4), s);
    assert_int_not_equal(rs_core->string("other", 5), s);
}

static void handle_usedAgain_isANewCommunicator(void **state)
{
    assert_int_equal(in_child("handles", use_a_handle_again), 0);
}

static void free_types_and_make_them_again(void)
{
    struct rs_type *a = rs_core->define_dtype(RS_COMM_MPI, 0x10, "derived type", 24);
    rs_core->forget_type(RS_COMM_MPI, 0x10);
    assert_null(rs_core->find_dtype(RS_COMM_MPI, 0x10));
    uint64_t used = rs_state.control->defs_used;
    for (uint64_t handle = 0x10; handle < 0x1000; handle++)
        assert_ptr_equal(rs_core->define_dtype(RS_COMM_MPI, handle, "derived type", 24), a);
    assert_int_equal(rs_state.control->defs_used, used);
    assert_int_not_equal(rs_core->define_dtype(RS_COMM_MPI, 0x10, "derived type", 32)->id, a->id);
    assert_int_not_equal(rs_core->define_dtype(RS_COMM_MPI, 0x11, "another", 24)->id, a->id);
}

static void type_madeAgain_takesNoMoreRoom(void **state)
{
    assert_int_equal(in_child("types", free_types_and_make_them_again), 0);
}

/* ---- limits ---- */

static void define_many(unsigned n)
{
    char name[64];
    for (unsigned i = 0; i < n; i++) {
        g_snprintf(name, sizeof name, "communicator number %u of very many of them", i);
        struct rs_comm *c =
            rs_core->define_comm(RS_COMM_MPI, 0x1234, 100 + i, 77, 0, 1, NULL, -1, name);
        record(RS_OP_MPI_Barrier, c->id, 0, 0);
    }
}

static void set_limit(rlim_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
}

static void end_unheard_of(guint rings)
{
    sigset_t pending;
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGXFSZ));
    rs_life_end(RS_END_EXIT);
    assert_int_equal(count_rings(rs_state.control->prefix), rings);
}

/* No thread's ring fits: a signal would come, and end the program. */
static void meet_limit_with_rings(void)
{
    world();
    set_limit(1 << 20);
    record_on_threads();
    end_unheard_of(0);
}

static void limit_ofFileSize_leavesRingsInMemory(void **state)
{
    assert_int_equal(in_child("rings", meet_limit_with_rings), 0);
    g_autoptr(RsModel) m = read_run("rings");
    assert_int_equal(count_named(m, "MPI_Barrier"), THREADS * 1000);
    assert_false(m->incomplete);
}

/* Nor do definitions past the first 256 KiB, which must not be touched in the file. */
static void meet_limit_with_definitions(void)
{
    world();
    record(RS_OP_MPI_Barrier, 0, 0, 0); /* this ring is a file */
    set_limit(300000);
    define_many(20000);
    end_unheard_of(2); /* events are left in them, as the capture met the limit too */
}

static void limit_ofFileSize_leavesDefinitionsInMemory(void **state)
{
    assert_int_equal(in_child("definitions", meet_limit_with_definitions), 0);
    g_autofree gchar *path = g_build_filename(folder, "definitions", NULL);
    g_autoptr(GError) error = NULL;
    const RsMerge merge = {.path = path, .formats = "sqlite"};
    g_autoptr(RsModel) m = rs_merge(&merge, NULL, &error); /* the rings go with it */
    if (!m)
        fail_msg("%s", error->message);
    assert_true(count_named(m, "MPI_Barrier") > 0);
    assert_int_equal(rs_model_rank(m, 0)->ending, RS_ENDING_CLEAN); /* nobody killed it */
}

static void define_and_count(void)
{
    world();
    define_many(150000);
    rs_core->flush(RS_END_FINALIZE);
    const struct rs_ring_process *c = rs_state.control;
    uint64_t whole = c->defs_used + rs_self->ring->head * sizeof(struct rs_event);
    assert_true(c->defs_used > 16 << 20);
    assert_in_range(c->capture_bytes, whole, whole + whole / 2);
}

static void definitions_ofAMultipleOfASegment_areRepeatedSeldom(void **state)
{
    assert_int_equal(in_child("many", define_and_count), 0);
}

/* Returns the id of the last of `n` texts of `bytes` that differ. */
static uint32_t define_texts(uint32_t n, size_t bytes)
{
    char *text = malloc(bytes);
    uint32_t id = 0;
    memset(text, 'x', bytes);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(text, &i, sizeof(i));
        id = rs_core->string(text, bytes);
    }
    free(text);
    return id;
}

static void fill_definitions(void)
{
    world();
    assert_int_equal(define_texts(RS_DEFS_MAX / 65000, 65535), 0);
    assert_int_equal(define_texts(5000, 16), 0); /* what was left */
    rs_writer_forget();                          /* nothing of this is worth a file */
    assert_int_equal(rs_core->define_comm(RS_COMM_MPI, 1, 2, 0, 0, 1, NULL, -1, NULL)->id, 0);
    const char *facts;
    size_t n = rs_meta_payload(&facts);
    assert_non_null(memmem(facts, n, "off.definitions", sizeof("off.definitions")));
    char path[RS_RING_PATH_MAX + 2];
    g_snprintf(path, sizeof(path), "%s.0", rs_state.control->prefix);
    unlink(path);
}

static void define_withoutRoom_saysSoInTheCapture(void **state)
{
    assert_int_equal(in_child("crowded", fill_definitions), 0);
}

/* ---- fork ---- */

static void fork_and_go_on(void)
{
    struct rs_comm *c = world();
    record(RS_OP_MPI_Barrier, c->id, 0, 0);
    pid_t pid = fork();
    if (pid == 0) {
        record(RS_OP_MPI_Allreduce, c->id, 0, 1); /* what the parent knew serves the child */
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    record(RS_OP_MPI_Barrier, c->id, 1, 0);
}

static void fork_ofATracedProcess_givesTheChildItsOwnCapture(void **state)
{
    assert_int_equal(in_child("fork", fork_and_go_on), 0);
    g_autofree gchar *path = g_build_filename(folder, "fork", NULL);
    g_autoptr(GDir) d = g_dir_open(path, 0, NULL);
    guint captures = 0;
    for (const gchar *name; (name = g_dir_read_name(d));) {
        g_autofree gchar *file = g_build_filename(path, name, NULL);
        const gchar *paths[] = {file, NULL};
        g_autoptr(RsModel) m = rs_run_open(paths, NULL, NULL, NULL);
        assert_non_null(m);
        guint barriers = count_named(m, "MPI_Barrier");
        assert_int_equal(barriers + 2 * count_named(m, "MPI_Allreduce"), 2);
        captures++;
    }
    assert_int_equal(captures, 2);
}

/* A child that no handler hears of: it has the parent's rings, and must leave them alone. */
static void fork_unheard(void)
{
    struct rs_comm *c = world();
    record(RS_OP_MPI_Barrier, c->id, 0, 0);
    uint64_t defined = rs_state.control->defs_used;
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        for (uint32_t i = 0; i < 7; i++)
            record(RS_OP_MPI_Allreduce, c->id, i, 1);
        rs_core->name_thread((uint32_t)getppid(), "a child's name for its parent's thread");
        pid_t own = fork();
        if (own == 0)
            record(RS_OP_MPI_Allreduce, c->id, 8, 1);
        else
            waitpid(own, NULL, 0);
        rs_life_end(RS_END_EXIT);
        syscall(SYS_exit_group, 0);
    }
    waitpid(pid, NULL, 0);
    assert_int_equal(rs_state.control->defs_used, defined);
    usleep(300000); /* what the child wrote would be drained by now */
    record(RS_OP_MPI_Barrier, c->id, 1, 0);
    rs_life_end(RS_END_EXIT);
}

static void fork_unheardOf_leavesTheParentsRings(void **state)
{
    assert_int_equal(in_child("unheard", fork_unheard), 0);
    g_autoptr(RsModel) m = read_run("unheard");
    assert_int_equal(count_named(m, "MPI_Barrier"), 2);
    assert_int_equal(count_named(m, "MPI_Allreduce"), 0);
    assert_false(m->incomplete);
}

/* ---- nothing ---- */

static void do_nothing(void)
{
}

static void end_withoutAnEvent_leavesNothing(void **state)
{
    assert_int_equal(in_child("nothing", do_nothing), 0);
    g_autofree gchar *path = g_build_filename(folder, "nothing", NULL);
    assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

/* ---- a folder that can't be written ---- */

static void record_nowhere(void)
{
    g_strlcpy(rs_env.dir, "/proc/no/such", sizeof(rs_env.dir));
    errno = 5;
    assert_null(world());
    record(RS_OP_MPI_Barrier, 0, 0, 0);
    assert_int_equal(errno, 5);
    assert_int_equal(*rs_core->on, 0);
}

static void start_withoutAFolder_turnsRecordingOff(void **state)
{
    assert_int_equal(in_child("nowhere", record_nowhere), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_afterThreads_keepsEveryEvent),
        cmocka_unit_test(end_ofACapture_saysWhatItCost),
        cmocka_unit_test(kill_insideACall_leavesEventsAndTheCall),
        cmocka_unit_test(room_ofAFullRing_dropsAndRecordsTheHole),
        cmocka_unit_test(limit_ofTheCapture_leavesOutWhatFollows),
        cmocka_unit_test(limit_ofTheCaptureOfAKilledProcess_countsEachEventOnce),
        cmocka_unit_test(limit_ofACaptureThatKeepsTheLast_holdsTheNewest),
        cmocka_unit_test(limit_ofACaptureThatCannotBeWrittenAgain_holdsAll),
        cmocka_unit_test(capture_thatIsRemoved_isWrittenNoMore),
        cmocka_unit_test(death_whileACaptureIsWrittenAgain_losesNothing),
        cmocka_unit_test(handle_usedAgain_isANewCommunicator),
        cmocka_unit_test(limit_ofFileSize_leavesRingsInMemory),
        cmocka_unit_test(limit_ofFileSize_leavesDefinitionsInMemory),
        cmocka_unit_test(definitions_ofAMultipleOfASegment_areRepeatedSeldom),
        cmocka_unit_test(type_madeAgain_takesNoMoreRoom),
        cmocka_unit_test(define_withoutRoom_saysSoInTheCapture),
        cmocka_unit_test(fork_ofATracedProcess_givesTheChildItsOwnCapture),
        cmocka_unit_test(fork_unheardOf_leavesTheParentsRings),
        cmocka_unit_test(end_withoutAnEvent_leavesNothing),
        cmocka_unit_test(start_withoutAFolder_turnsRecordingOff),
    };
    folder = g_dir_make_tmp("test-core-XXXXXX", NULL);
    recorded_so_far = mmap(NULL, sizeof(*recorded_so_far), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    g_autofree gchar *remove = g_strdup_printf("rm -rf '%s'", folder);
    return system(remove) || failed;
}
