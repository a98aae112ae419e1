/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.c - from load to the end of the process: what starts a capture, what ends it, what a fork
 * and an exec mean. Nothing is made before the first event.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "parts.h"
#include "state.h"
#include "unobserved.h"

#define EXPORT     __attribute__((visibility("default")))
#define FIRST_DEFS ((size_t)1 << 18)

#define END_WAITS_SECONDS 5

static volatile uint32_t
    on_for_all[RS_ON_WORDS]; /* where no memory can be zeroed for children alone */
struct rs_state rs_state = {.lock = PTHREAD_MUTEX_INITIALIZER,
                            .writer_free = PTHREAD_COND_INITIALIZER,
                            .fd = -1,
                            .on = on_for_all,
                            .epoch = 1};
const struct rs_core *rs_core;
__thread struct rs_thread *rs_self;
__thread uint32_t rs_quiet;

/* What the holder of the lock had before: a handler or a cancellation while it is held would leave
 * it held, or wait for it for ever. */
static sigset_t mask_before;
static int cancel_before;

static bool lock_until(const struct timespec *end)
{
    sigset_t all, before;
    int cancel;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int error = end ? pthread_mutex_clocklock(&rs_state.lock, CLOCK_MONOTONIC, end)
                    : pthread_mutex_lock(&rs_state.lock);
    if (error == 0) {
        mask_before = before;
        cancel_before = cancel;
        rs_quiet++;
        return true;
    }
    pthread_setcancelstate(cancel, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return false;
}

void rs_lock(void)
{
    lock_until(NULL);
}

bool rs_lock_within(unsigned seconds)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    return lock_until(&end);
}

void rs_unlock(void)
{
    sigset_t before = mask_before;
    int cancel = cancel_before;
    rs_quiet--;
    pthread_mutex_unlock(&rs_state.lock);
    pthread_setcancelstate(cancel, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct rs_held rs_lock_open(void)
{
    struct rs_held held = {mask_before, cancel_before};
    pthread_mutex_unlock(&rs_state.lock);
    return held;
}

void rs_lock_shut(const struct rs_held *held)
{
    pthread_mutex_lock(&rs_state.lock);
    mask_before = held->mask;
    cancel_before = held->cancel;
}

int rs_lock_wait(pthread_cond_t *cond, const struct timespec *end)
{
    struct rs_held held = {mask_before, cancel_before};
    int error = pthread_cond_clockwait(cond, &rs_state.lock, CLOCK_MONOTONIC, end);
    mask_before = held.mask;
    cancel_before = held.cancel;
    return error;
}

static char library_path[RS_RING_PATH_MAX]; /* "" unknown */

static void find_library(void)
{
    Dl_info info;
    if (dladdr((void *)find_library, &info) && info.dli_fname &&
        !realpath(info.dli_fname, library_path))
        library_path[0] = 0;
}

const char *rs_life_library(void)
{
    return library_path;
}

/* ---- the start ---- */

static uint64_t start_time(void)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    char *p = strrchr(text, ')'); /* the name in field 2 may hold anything */
    for (int field = 2; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

static bool map_control(void)
{
    char prefix[128], path[RS_RING_PATH_MAX];
    uint64_t started = start_time();
    snprintf(prefix, sizeof(prefix), "/dev/shm/ringscope-%u-%d-%llx", (unsigned)getuid(),
             rs_state.pid, (unsigned long long)started);
    /* After an exec the earlier image's files still stand. */
    for (int n = 1; n < 100; n++) {
        snprintf(path, sizeof(path), "%s.0", prefix);
        if (access(path, F_OK) != 0)
            break;
        snprintf(prefix, sizeof(prefix), "/dev/shm/ringscope-%u-%d-%llx-%d", (unsigned)getuid(),
                 rs_state.pid, (unsigned long long)started, n);
    }
    struct rs_ring_process *c =
        rs_memory_map(prefix, 0, RS_RING_DEFS_OFFSET + FIRST_DEFS,
                      RS_RING_DEFS_OFFSET + RS_DEFS_MAX, path, sizeof(path));
    if (!c)
        return false;
    rs_state.kill_safe = rs_state.control_is_file = rs_state.defs_grow = path[0] != 0;
    if (!rs_state.kill_safe)
        rs_meta_not_kill_safe_locked(errno);
    snprintf(c->prefix, sizeof(c->prefix), "%s", prefix);
    c->version = RS_RING_VERSION;
    c->pid = rs_state.pid;
    c->pid_start = started;
    c->defs_capacity = FIRST_DEFS;
    c->magic = RS_RING_MAGIC;
    rs_state.control = c;
    return true;
}

static void remove_control(void)
{
    char path[RS_RING_PATH_MAX + 8];
    snprintf(path, sizeof(path), "%s.0", rs_state.control->prefix);
    if (rs_state.control_is_file)
        unlink(path);
    rs_state.control_is_file = false;
}

static void drop_control(void)
{
    remove_control();
    munmap(rs_state.control, RS_RING_DEFS_OFFSET + RS_DEFS_MAX);
    rs_state.control = NULL;
}

void rs_life_stop(void)
{
    rs_state.on[RS_ON_KEEP] = 0;
    rs_state.on[RS_ON_RECORD] = 0;
}

bool rs_life_start(void)
{
    if (rs_state.control)
        return true;
    if (!rs_state.on[RS_ON_KEEP])
        return false;
    rs_state.pid = (int32_t)getpid();
    if (!map_control()) {
        rs_life_stop();
        rs_say("nothing is recorded: no memory for the capture: %s", strerrordesc_np(errno));
        return false;
    }
    if (!rs_writer_open()) {
        drop_control();
        return false;
    }
    rs_meta_collect();
    rs_clock_start();
    rs_defs_start();
    rs_counters_start();
    rs_control_start();
    rs_window_start();
    rs_state.started = 1;
    /* The head is in the file at once: a process that dies now is still found by its rings. */
    if (rs_writer_claim(0)) {
        rs_writer_drain();
        rs_writer_release();
    }
    return true;
}

/* ---- the end ---- */

bool rs_life_is_own(void)
{
    return rs_state.on[RS_ON_OWN] &&
           rs_state.pid == (int32_t)getpid(); /* a vfork's child is no copy */
}

static bool is_own_process(void)
{
    return rs_state.control && rs_life_is_own();
}

static void remove_rings(void)
{
    for (struct rs_thread_entry *e = rs_state.threads; e; e = e->next) {
        if (e->path[0])
            unlink(e->path);
        e->path[0] = 0;
    }
    remove_control();
}

/* May run in a signal handler that interrupted anything, also malloc: no step of the end, down to
 * the export, allocates. A thread that waits for what the handler interrupted may hold the lock for
 * ever, or a disk the writer: then the rings are left for `merge`. */
void rs_life_end(enum rs_end_reason reason)
{
    if (!is_own_process())
        return;
    int saved = errno;
    __atomic_store_n(&rs_state.control->end_reason, reason, __ATOMIC_RELEASE);
    if (!rs_lock_within(END_WAITS_SECONDS)) {
        errno = saved;
        return;
    }
    rs_life_stop(); /* threads that go on record nothing more */
    if (!rs_writer_claim(END_WAITS_SECONDS)) {
        rs_unlock();
        errno = saved;
        return;
    }
    bool first = !rs_state.ended && rs_state.fd >= 0;
    rs_writer_end(reason);
    rs_writer_release();
    bool ended = rs_state.ended;
    if (first && (ended || rs_state.gone)) /* what is in them has no capture to go to */
        remove_rings();
    rs_unlock();
    if (first && ended && reason != RS_END_ABORT && reason != RS_END_EXEC)
        rs_export_capture(rs_writer_path());
    errno = saved;
}

/* Everything recorded so far is in the file; recording goes on. */
static void flush(enum rs_end_reason reason)
{
    if (reason != RS_END_FINALIZE) {
        rs_life_end(reason);
        return;
    }
    if (!is_own_process())
        return;
    int saved = errno;
    rs_cuda_flush();
    rs_lock();
    rs_clock_anchor_locked();
    if (rs_writer_claim(END_WAITS_SECONDS)) {
        rs_writer_drain();
        rs_writer_release();
    }
    rs_unlock();
    errno = saved;
}

/* ---- fork ---- */

static bool locked_for_fork; /* not in a process whose lock is another's */
static uint32_t on_before[RS_ON_WORDS];

static void before_fork(void)
{
    if (!rs_life_is_own()) {
        locked_for_fork = false;
        return;
    }
    rs_lock();
    locked_for_fork = true;
    for (int i = 0; i < RS_ON_WORDS; i++)
        on_before[i] = rs_state.on[i];
}

static void in_parent(void)
{
    if (locked_for_fork)
        rs_unlock();
}

/* The child has a capture of its own, made at its first event. It holds all definitions so far, so
 * every id and handle that some wrapper keeps stays good. */
static void in_child(void)
{
    sigset_t before = mask_before;
    pthread_mutex_init(&rs_state.lock, NULL);
    pthread_cond_init(&rs_state.writer_free, NULL);
    rs_state.writing = false; /* the parent's drain thread may be */
    if (rs_state.control) {
        rs_writer_forget();
        rs_counters_forget();
        rs_threads_forget();
        rs_clock_forget(SIZE_MAX);
        rs_window_forget();
        rs_defs_inherit(rs_state.control);
        rs_state.control = NULL;
        rs_state.meta_dirty = true;
        rs_state.started = 0;
        rs_state.draining = false;
    }
    rs_state.end_flags = 0; /* MPI is the parent's */
    rs_state.pid = (int32_t)getpid();
    rs_state.forked = true;
    rs_state.on[RS_ON_OWN] = 1;
    if (!locked_for_fork)
        return;
    for (int i = 0; i < RS_ON_WORDS; i++)
        rs_state.on[i] = on_before[i];
    rs_quiet--;
    pthread_setcancelstate(cancel_before, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- exits that run no destructor ---- */

EXPORT void _exit(int status);
EXPORT void _exit(int status)
{
    rs_life_end(RS_END_QUICK_EXIT);
    for (;;)
        syscall(SYS_exit_group, status);
}

EXPORT void _Exit(int status);
EXPORT void _Exit(int status)
{
    _exit(status);
}

/* A failed exec goes on in this image: its capture goes on behind its END. */
void rs_life_go_on(void)
{
    if (!is_own_process()) /* and its lock another's */
        return;
    rs_lock();
    rs_state.control->end_reason = 0;
    if (!rs_state.off_capture[0]) {
        rs_state.on[RS_ON_KEEP] = 1;
        rs_state.on[RS_ON_RECORD] = !rs_window_is_off();
    }
    if (rs_state.ended) {
        int saved = errno;
        rs_state.ended = false;
        rs_state.kill_safe = false; /* the rings have no names any more */
        rs_meta_set_locked("kill_safe", "no: an exec failed");
        if (rs_writer_claim(0)) { /* that stands in the file before a kill can come */
            rs_writer_drain();
            rs_writer_release();
        }
        errno = saved;
    }
    rs_unlock();
}

static void at_quick_exit_end(void)
{
    rs_life_end(RS_END_QUICK_EXIT);
}

/* ---- load ---- */

static void set_rank(int32_t rank, int32_t world_size)
{
    char text[16];
    rs_lock();
    snprintf(text, sizeof(text), "%d", rank);
    rs_meta_set_locked("rank", text);
    snprintf(text, sizeof(text), "%d", world_size);
    rs_meta_set_locked("world_size", text);
    rs_unlock();
}

static const char *run_id(void)
{
    return rs_env.run_id;
}

static void set_run_id(const char *id)
{
    rs_lock();
    snprintf(rs_env.run_id, sizeof(rs_env.run_id), "%s", id);
    rs_meta_set_locked("run_id", rs_env.run_id);
    rs_unlock();
}

static uint64_t run_hash(void)
{
    uint64_t h = 0;
    for (const char *p = rs_env.run_id; *p; p++)
        h = rs_hash_mix(h, (unsigned char)*p);
    return h;
}

static const char *host(void)
{
    return rs_env.host;
}

static const char *domain(void)
{
    return rs_env.domain;
}

static void fill_core(void)
{
    struct rs_core *c = &rs_state.core;
    c->abi = sizeof(*c);
    c->parts = rs_env.parts;
    c->epoch = &rs_state.epoch;
    c->on = rs_state.on;
    c->started = &rs_state.started;
    c->end_flags = &rs_state.end_flags;
    c->use_tsc = rs_clock_tsc_is_invariant();
    c->rank_told = rs_env.rank >= 0;
    c->thread = rs_thread_attach;
    c->make_room = rs_thread_make_room;
    c->string = rs_defs_string;
    c->name_thread = rs_thread_name;
    c->define_op = rs_defs_op;
    rs_handles_fill(c);
    c->meta = rs_meta_set;
    c->set_rank = set_rank;
    c->run_id = run_id;
    c->set_run_id = set_run_id;
    c->run_hash = run_hash;
    c->host = host;
    c->domain = domain;
    c->anchor = rs_clock_anchor_now;
    c->probe = rs_clock_probe;
    c->flush = flush;
}

/* A child made by clone or _Fork runs no handler of ours, and has our rings mapped: there recording
 * is off, or its calls would take the place of the parent's. */
static void make_switch(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return;
    if (madvise(p, page, MADV_WIPEONFORK) == 0)
        rs_state.on = p;
    else
        munmap(p, page);
}

__attribute__((constructor)) static void load(void)
{
    int saved = errno;
    rs_exec_init();
    rs_say_init();
    rs_env_read();
    make_switch();
    fill_core();
    rs_threads_init();
    rs_state.pid = (int32_t)getpid();
    for (int i = 0; i < RS_ON_WORDS; i++)
        rs_state.on[i] = 1;
    rs_core = &rs_state.core;
    pthread_atfork(before_fork, in_parent, in_child);
    at_quick_exit(at_quick_exit_end);
    find_library();
    rs_mpi_init(library_path);
    rs_nccl_init(library_path);
    rs_nvtx_init(library_path);
    rs_io_init(library_path);
    rs_cuda_init(library_path);
    errno = saved;
}

__attribute__((destructor)) static void unload(void)
{
    rs_unobserved_tell();
    rs_life_end(RS_END_EXIT);
}
