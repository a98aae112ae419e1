/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - the one process-wide state of the tracer's core, and who of its files does what.
 *
 * memory.c maps files on tmpfs; threads.c makes, lists and drops threads' rings; defs.c appends
 * definitions; handles.c finds communicators and types; writer.c turns it all into blocks of the
 * capture, limit.c leaves out what that has no room for, keep.c what is old; drain.c is the thread
 * that calls the writer; window.c switches recording off and on, control.c for who asks from
 * outside; life.c is load, fork, exec and exit.
 *
 * Locking: `rs_state.lock` guards all below but what says "atomic"; nothing on a wrapped call's
 * repeated path takes it. Who holds it calls neither malloc nor free, directly or through libc: a
 * signal handler that ends the program may have interrupted them, and the end takes this lock.
 * A disk may stall for minutes, so the lock is open while one is written to: whoever drains claims
 * the writer, and what only the writer changes (marked so) stays as it is meanwhile. All else may
 * have grown: threads at the head of their list, definitions, facts and clock records at the end.
 */
#ifndef RS_TRACER_STATE_H
#define RS_TRACER_STATE_H

#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>

#include "core.h"

struct rs_thread_entry {
    struct rs_thread_entry *next;
    struct rs_thread thread;
    char path[RS_RING_PATH_MAX + 16]; /* "" where the ring is anonymous memory */
    size_t map_bytes;
    uint64_t head_seen; /* the writer's: where this drain ends */
    bool ended;         /* its thread is gone: drain once more, then drop */
};

struct rs_state {
    pthread_mutex_t lock;
    pthread_cond_t writer_free;
    bool writing; /* the writer is claimed */
    struct rs_core core;
    volatile uint32_t started, epoch; /* core.h */
    volatile uint32_t *on; /* core.h, in memory that the child of any fork finds zeroed */
    int32_t pid;
    bool forked;                     /* this process is a fork's child */
    uint64_t ticks_per_s;            /* of rs_tick; known from the start of the capture on */
    struct rs_ring_process *control; /* NULL before the first event. Definitions follow it */
    bool control_is_file;            /* on tmpfs, and its name stands there */
    bool defs_grow;                  /* the file takes more definitions */
    bool kill_safe;                  /* so are all rings, and all definitions are in the file */
    struct rs_thread_entry *threads;
    uint32_t thread_number;
    /* the capture file: the writer's, down to `skipped` */
    int fd;                       /* -1 not open */
    uint64_t fd_device, fd_inode; /* to notice that the program closed our descriptor */
    bool fd_has_name;             /* its file system counts links: without one it was removed */
    bool gone;                    /* so it was */
    uint64_t segment_bytes;       /* written since definitions were last repeated */
    uint64_t events, dropped;     /* written; of threads that are gone */
    bool ended;                   /* the END block is written */
    uint32_t end_flags;           /* atomic; enum rs_end_flags, of back ends */
    uint64_t bytes;               /* written in all */
    uint64_t drain_ns;            /* CPU time of the drain thread */
    uint64_t skipped;             /* events that the limit left out */
    bool meta_dirty;
    bool draining;                           /* the drain thread runs in this process */
    uint32_t wake;                           /* atomic, a futex: a ring is half full */
    char off_capture[RS_RING_PATH_MAX + 64]; /* why writing stopped */
};
extern struct rs_state rs_state RS_HIDDEN;
/* Nonzero: what this thread does to files is the tracer's, under the lock or in its own thread. */
extern __thread uint32_t rs_quiet RS_HIDDEN __attribute__((tls_model("initial-exec")));

void rs_lock(void) RS_HIDDEN;
bool rs_lock_within(unsigned seconds) RS_HIDDEN; /* false: it was not to be had */
void rs_unlock(void) RS_HIDDEN;
/* Opens the lock for others, though this thread goes on as its holder: no signal, no cancellation.
 */
struct rs_held {
    sigset_t mask;
    int cancel;
};
struct rs_held rs_lock_open(void) RS_HIDDEN;
void rs_lock_shut(const struct rs_held *held) RS_HIDDEN;
/* As pthread_cond_clockwait, by the monotonic clock. */
int rs_lock_wait(pthread_cond_t *cond, const struct timespec *end) RS_HIDDEN;

/* memory.c. Maps `reserve` bytes of a new file "<prefix>.<number>" that has `bytes`, or anonymous
 * memory where that fails; `ret_path` is "" then, errno why. NULL where there is no memory at all.
 */
void *rs_memory_map(const char *prefix, unsigned number, size_t bytes, size_t reserve,
                    char *ret_path, size_t path_size) RS_HIDDEN;
/* Zeroed memory that is never freed; NULL where there is none. Locked. */
void *rs_memory_keep(size_t bytes) RS_HIDDEN;
/* Makes the file `bytes` long, so that more of its mapping may be touched. */
bool rs_memory_grow(const char *path, size_t bytes) RS_HIDDEN;
/* From now on this part of a mapping is anonymous memory, zeroed. */
bool rs_memory_detach(void *part, size_t bytes) RS_HIDDEN;
/* Where a file would have grown past the process's limit (EFBIG), a signal came with the error,
 * which ends a program by default: it is taken back. Locked, as signals are blocked then. */
void rs_memory_no_signal(int error) RS_HIDDEN;

/* threads.c */
struct rs_thread *rs_thread_attach(void) RS_HIDDEN;
bool rs_thread_make_room(struct rs_thread *t, unsigned slots) RS_HIDDEN;
void rs_thread_name(uint32_t tid, const char *name) RS_HIDDEN;
void rs_threads_drop_ended(void) RS_HIDDEN; /* locked, by the writer */
void rs_threads_forget(void) RS_HIDDEN;     /* child of a fork */
void rs_threads_init(void) RS_HIDDEN;

/* defs.c, all locked by the caller but rs_defs_string and rs_defs_op */
#define RS_DEFS_MAX ((size_t)64 << 20)
/* One record in two pieces; `rest` may be NULL. Padded with zeros to 8 bytes. */
bool rs_defs_append(const void *head, size_t head_bytes, const void *rest,
                    size_t rest_bytes) RS_HIDDEN;
uint32_t rs_defs_string_locked(const char *text, size_t bytes) RS_HIDDEN;
uint32_t rs_defs_string(const char *text, size_t bytes) RS_HIDDEN;
void rs_defs_op(uint16_t op) RS_HIDDEN;
void rs_defs_thread(uint32_t number, uint32_t tid, const char *name) RS_HIDDEN; /* locked */
void rs_defs_start(void) RS_HIDDEN; /* locked: writes what was defined before the start */
/* In the child of a fork: `parent` is kept until the child's capture begins with its definitions.
 */
void rs_defs_inherit(struct rs_ring_process *parent) RS_HIDDEN;

/* handles.c */
void rs_handles_fill(struct rs_core *core) RS_HIDDEN;

/* clock.c */
bool rs_clock_tsc_is_invariant(void) RS_HIDDEN;
void rs_clock_start(void) RS_HIDDEN; /* locked */
struct rs_anchor rs_clock_anchor(void) RS_HIDDEN;
void rs_clock_probe(const struct rs_clock_probe *probe) RS_HIDDEN;
/* All anchors and probes that wait as one CLOCK payload, good until they are forgotten; returns its
 * bytes. Locked. */
size_t rs_clock_payload(const void **ret, uint64_t *ret_first, uint64_t *ret_last) RS_HIDDEN;
void rs_clock_anchor_now(void) RS_HIDDEN; /* locks */
void rs_clock_anchor_locked(void) RS_HIDDEN;
void rs_clock_forget(size_t bytes) RS_HIDDEN; /* the first `bytes` of them */

/* meta.c */
void rs_meta_set(const char *key, const char *value) RS_HIDDEN; /* locks */
void rs_meta_set_locked(const char *key, const char *value) RS_HIDDEN;
/* Rings could not be made on tmpfs; `error` is the errno. */
void rs_meta_not_kill_safe_locked(int error) RS_HIDDEN;
void rs_meta_collect(void) RS_HIDDEN; /* locked: what can be known at the start */
/* All keys and values as one META payload, good until the next call; returns its length. Locked. */
size_t rs_meta_payload(const char **ret) RS_HIDDEN;

/* writer.c, all locked, and by who has claimed the writer */
/* Waits until no other thread writes, so many seconds at most; false: one does still. */
bool rs_writer_claim(unsigned seconds) RS_HIDDEN;
void rs_writer_release(void) RS_HIDDEN;
bool rs_writer_open(void) RS_HIDDEN;
/* Writes all of it, with the lock open; errno on false. */
bool rs_writer_write(int fd, struct iovec *v, int n) RS_HIDDEN;
void rs_writer_seal(struct rs_block *head, uint32_t sequence) RS_HIDDEN;
bool rs_writer_has_file(void) RS_HIDDEN; /* its descriptor is still what it was */
void rs_writer_take_file(int fd) RS_HIDDEN;
bool rs_writer_drain(void) RS_HIDDEN; /* whether everything recorded is in the file */
/* What the limit left out of a thread's events, if any, is in the file. */
bool rs_writer_put_hole(struct rs_thread *t) RS_HIDDEN;
void rs_writer_end(enum rs_end_reason reason) RS_HIDDEN;
const char *rs_writer_path(void) RS_HIDDEN;
void rs_writer_forget(void) RS_HIDDEN;
/* `fd`, or a copy above the numbers that programs redirect and expect to get next. */
int rs_writer_move_up(int fd) RS_HIDDEN;

/* limit.c, all locked, by the writer */
/* Where the block of events [from, to) must end so that the file stays below the limit: `from`
 * where it takes none any more. */
uint64_t rs_limit_cut(const struct rs_thread *t, uint64_t from, uint64_t to) RS_HIDDEN;
bool rs_limit_is_reached(void) RS_HIDDEN;
/* Counts the ring's events up to `head` and lets go of them. */
void rs_limit_skip(struct rs_thread *t, uint64_t head) RS_HIDDEN;
/* What was left out since the last time: false where it is none. */
bool rs_limit_hole(const struct rs_thread *t, struct rs_event *ret, uint64_t *ret_tail) RS_HIDDEN;
/* It stands in the file. */
void rs_limit_forget_hole(struct rs_thread *t) RS_HIDDEN;

/* keep.c, all locked, by the writer */
/* Between blocks: goes on with making the capture small again, where it is at its limit. */
void rs_keep_step(void) RS_HIDDEN;
void rs_keep_abandon(void) RS_HIDDEN; /* at the end, and in the child of a fork */
bool rs_keep_gave_up(void) RS_HIDDEN; /* it failed so often that the capture may not grow on */
/* Slots of a block of events, so that a capture of this limit has many. */
uint64_t rs_keep_chunk(uint64_t slots) RS_HIDDEN;

/* window.c */
void rs_window_start(void) RS_HIDDEN;  /* locked: at the start of the capture */
void rs_window_forget(void) RS_HIDDEN; /* child of a fork */
/* Asked for from outside: windows count no more. Locks. */
void rs_window_ask(bool on, enum rs_switch_why why) RS_HIDDEN;
bool rs_window_is_off(void) RS_HIDDEN;
/* The drain thread: looks at the clock. Returns how long that need not be done again, at most
 * `most_ns`. */
uint64_t rs_window_look(uint64_t now_ns, uint64_t most_ns) RS_HIDDEN;
/* Switches that the capture lacks, good until they are forgotten; returns their bytes. Locked. */
size_t rs_window_payload(const void **ret, uint64_t *ret_first, uint64_t *ret_last) RS_HIDDEN;
void rs_window_wrote(size_t bytes) RS_HIDDEN;

/* control.c */
void rs_control_start(void) RS_HIDDEN;           /* locked: at the start of the capture */
void rs_control_look(uint64_t now_ns) RS_HIDDEN; /* the drain thread, at any time */

/* cost.c, all locked */
/* Once in a process: what a record costs is in META. */
void rs_cost_calibrate(void) RS_HIDDEN;
/* What is known at the end, as a META payload; returns its length. */
#define RS_COST_BYTES 192
size_t rs_cost_payload(char ret[RS_COST_BYTES], uint64_t events, uint64_t dropped) RS_HIDDEN;

/* drain.c */
void rs_drain_start(void) RS_HIDDEN; /* locked */
void rs_drain_wake(void) RS_HIDDEN;

/* counters.c */
void rs_counters_start(void) RS_HIDDEN;             /* locked */
void rs_counters_forget(void) RS_HIDDEN;            /* child of a fork */
void rs_counters_sample(uint64_t now_ns) RS_HIDDEN; /* the drain thread, at any time */

/* life.c */
/* Not so in the child of a fork that no handler saw: clone, _Fork, vfork. */
bool rs_life_is_own(void) RS_HIDDEN;
bool rs_life_start(void) RS_HIDDEN; /* locked: the first event of this process */
void rs_life_end(enum rs_end_reason reason) RS_HIDDEN;
/* Nothing is recorded any more, and handles mean nothing. */
void rs_life_stop(void) RS_HIDDEN;
void rs_life_go_on(void) RS_HIDDEN;          /* after an end by RS_END_EXEC that was none */
const char *rs_life_library(void) RS_HIDDEN; /* own absolute path */

/* exec.c */
void rs_exec_init(void) RS_HIDDEN; /* in the constructor */

/* env.c */
struct rs_env {
    char dir[RS_RING_PATH_MAX]; /* absolute */
    char run_id[RS_RUN_ID_MAX];
    char host[256];
    char domain[384];
    char machine[256];
    int32_t rank, world_size, local_rank; /* -1 unknown */
    uint32_t parts;
    uint64_t size_limit; /* bytes of the capture; 0 none */
    bool keep_last;
    double start_s, stop_s; /* RINGSCOPE_START; 0 none */
    char steps[256];        /* RINGSCOPE_STEPS; "" none */
    int signal;             /* RINGSCOPE_SIGNAL; 0 none */
    bool export_chrome, export_sqlite;
    int verbose;
    char test_clock[64];
    char notes[4096]; /* wrong settings: name NUL text NUL ... */
    size_t notes_bytes;
};
extern struct rs_env rs_env RS_HIDDEN;
void rs_env_read(void) RS_HIDDEN;
const char *rs_env_program(void) RS_HIDDEN;
void rs_env_say_notes(void) RS_HIDDEN; /* once in a process and its forked children */

/* say.c. A line on standard error, for what a user would else never learn. Never waits and raises
 * no signal; silent where another file has taken standard error's place since the load. */
void rs_say_init(void) RS_HIDDEN;
void rs_say(const char *format, ...) RS_HIDDEN __attribute__((format(printf, 1, 2)));

/* export.c: converts the finished capture, if that is wanted and possible. Not locked. */
void rs_export_capture(const char *capture) RS_HIDDEN;

#endif
