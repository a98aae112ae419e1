/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that takes nothing for a while: who traces on it waits for it in its own thread alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <glib.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "merge.h"
#include "ops-numbers.h"
#include "run.h"
#include "state.h"

/* The disk: of this process alone, a child of a fork has one that works. */
static pthread_mutex_t disk = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pid_t stalled; /* whose disk it is; 0 none */
static unsigned waiting;

/* In place of libc's: the tracer writes its blocks by it. */
ssize_t writev(int fd, const struct iovec *v, int n)
{
    pthread_mutex_lock(&disk);
    waiting++;
    pthread_cond_broadcast(&changed);
    while (stalled == getpid())
        pthread_cond_wait(&changed, &disk);
    waiting--;
    pthread_mutex_unlock(&disk);
    return syscall(SYS_writev, fd, v, n);
}

static void set_stalled(pid_t whose)
{
    pthread_mutex_lock(&disk);
    stalled = whose;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&disk);
}

static void await_a_write(void)
{
    pthread_mutex_lock(&disk);
    while (!waiting)
        pthread_cond_wait(&changed, &disk);
    pthread_mutex_unlock(&disk);
}

static gchar *folder, *run; /* of all, of one test */

static void record(uint32_t seq)
{
    struct rs_thread *t = rs_thread_if_recording();
    assert_non_null(t);
    uint64_t start = rs_call_enter(t, RS_OP_MPI_Barrier, 1, seq, -1, 0, 0);
    uint64_t end = rs_call_leave(t);
    assert_true(rs_room(t, 1));
    struct rs_event *e = rs_slot(t, 0);
    *e = (struct rs_event){.op = RS_OP_MPI_Barrier, .peer = -1, .start = start, .end = end};
    e->comm = 1;
    e->seq = seq;
    rs_commit(t, 1);
}

static gpointer record_on_a_thread(gpointer unused)
{
    record(1);
    return unused;
}

static void fork_a_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        record(7);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static RsModel *read_run(void)
{
    g_autoptr(GError) error = NULL;
    const gchar *paths[] = {run, NULL};
    RsModel *m = rs_run_open(paths, NULL, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    return m;
}

static void begin_capture(void)
{
    static const int32_t members[] = {0};
    rs_core->set_rank(0, 1);
    rs_core->define_op(RS_OP_MPI_Barrier);
    rs_core->define_comm(RS_COMM_MPI, 0x1234, 77, 0, 0, 1, members, -1, "world");
    record(0);
}

/* Would never end where any of it waited for the disk: the test's time limit is the judge. */
static void go_on_beside_a_stalled_disk(void)
{
    begin_capture();
    set_stalled(getpid());
    rs_core->meta("note", "before");
    record(2);
    await_a_write();

    rs_core->meta("note", "during");
    assert_int_not_equal(rs_core->string("a text of its own", 17), 0);
    g_thread_join(g_thread_new("late", record_on_a_thread, NULL));
    fork_a_child();
    rs_core->anchor();
    rs_core->name_thread((uint32_t)getpid(), "renamed");
    assert_int_equal(waiting, 1); /* it stalled all the while */

    set_stalled(0);
    rs_life_end(RS_END_EXIT);
    assert_true(rs_state.ended);
}

/* The end doesn't wait for ever either; what the disk lacks stays in the rings. */
static void end_beside_a_stalled_disk(void)
{
    begin_capture();
    set_stalled(getpid());
    record(2);
    await_a_write();
    record(3);
    rs_life_end(RS_END_EXIT);
    assert_false(rs_state.ended);
    kill(getpid(), SIGKILL);
}

/* Runs `work` in a child with a capture of its own below `name`; returns its wait status. */
static int in_child(const char *name, void (*work)(void))
{
    g_free(run);
    run = g_build_filename(folder, name, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        g_strlcpy(rs_env.dir, run, sizeof(rs_env.dir));
        work();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void disk_thatStalls_holdsUpNoThreadOfTheProgram(void **state)
{
    assert_int_equal(in_child("going-on", go_on_beside_a_stalled_disk), 0);
    g_autoptr(RsModel) m = read_run();
    assert_int_equal(m->events.n, 4);
    assert_false(m->incomplete);
    assert_string_equal(g_hash_table_lookup(m->meta, "0/note"), "during");
}

static void end_besideAStalledDisk_leavesTheRestToMerge(void **state)
{
    int status = in_child("end", end_beside_a_stalled_disk);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    g_autoptr(GError) error = NULL;
    const RsMerge merge = {.path = run, .formats = "sqlite"};
    g_autoptr(RsModel) m = rs_merge(&merge, NULL, &error);
    if (!m)
        fail_msg("%s", error->message);
    assert_int_equal(m->events.n, 3);
    assert_int_equal(m->dropped, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disk_thatStalls_holdsUpNoThreadOfTheProgram),
        cmocka_unit_test(end_besideAStalledDisk_leavesTheRestToMerge),
    };
    folder = g_dir_make_tmp("test-stalled-disk-XXXXXX", NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    g_autofree gchar *remove = g_strdup_printf("rm -rf '%s'", folder);
    return system(remove) || failed;
}
