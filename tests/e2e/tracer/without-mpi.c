/* SPDX-License-Identifier: Apache-2.0 */
/* A program of NCCL calls without MPI that closes everything, forks, becomes a daemon, ... as its
 * argument names; what must be recorded of each stands in test-without-mpi.py. The calls are empty
 * groups: they need no device, no descriptor and no thread, so a fork's child may make them too. */
#include <errno.h>
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define NUMBERS 256

static void calls(int n)
{
    for (int i = 0; i < n; i++) {
        ncclGroupStart();
        ncclGroupEnd();
    }
}

static void print_end_of(const char *what, pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    printf("%s: %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    fflush(stdout);
}

/* Then every number that the process may have is a file of the program's own, into which it writes
 * nothing; the capture can't be opened again before it gives one back. */
static void close_all(void)
{
    const struct rlimit few = {NUMBERS, NUMBERS};
    struct stat st;
    setrlimit(RLIMIT_NOFILE, &few);
    close_range(3, ~0u, 0);
    calls(1000);
    int own = open("own", O_WRONLY | O_CREAT, 0600);
    for (int fd = 3; fd < NUMBERS; fd++)
        dup2(own, fd);
    calls(9000);
    usleep(200000); /* the tracer has something to write, and nowhere to */
    printf("own file: %ld\n", fstat(own, &st) == 0 ? (long)st.st_size : -1L);
    close_range(3, NUMBERS / 2, 0);
}

/* Standard error is closed, and its number then a file of the program's own. */
static void take_stderr(void)
{
    struct stat st;
    close(2);
    int own = open("own-2", O_WRONLY | O_CREAT, 0600);
    calls(10);
    printf("own file %d: %ld\n", own, fstat(own, &st) == 0 ? (long)st.st_size : -1L);
}

/* A broken pipe for standard error: a line into it would be the end of the program. */
static void break_stderr(void)
{
    int ends[2];
    if (pipe(ends) != 0)
        exit(1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    execl("/proc/self/exe", "without-mpi", "plain", NULL);
}

/* From now on the process may take this much more address space. */
static void limit_memory(rlim_t more)
{
    char text[64] = "";
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || !fgets(text, sizeof text, f))
        exit(1);
    fclose(f);
    rlim_t most = strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) != 0)
        exit(1);
}

static volatile sig_atomic_t rung;
static void hear(int sig)
{
    rung++;
}

/* Signals arrive all the time; errno is the program's. */
static void call_under_signals(void)
{
    const struct sigaction act = {.sa_handler = hear, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {0};
    int wrong = 0;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 1; i <= 200; i++) {
        sig_atomic_t before = rung;
        for (int made = 0; rung == before; made++) {
            if (made >= 50) /* a ring has room for all */
                continue;
            errno = i;
            calls(1);
            wrong += errno != i;
        }
        calls(20);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("signals: %s, errno wrong: %d\n", rung >= 200 ? "200" : "few", wrong);
}

static unsigned made; /* calls of threads that are cancelled */
static void *call_until_cancelled(void *unused)
{
    for (;;) {
        calls(1);
        __atomic_add_fetch(&made, 1, __ATOMIC_RELEASE);
        pthread_testcancel();
        usleep(10);
    }
    return unused;
}

static void cancel_threads(void)
{
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        unsigned before = __atomic_load_n(&made, __ATOMIC_ACQUIRE);
        if (pthread_create(&thread, NULL, call_until_cancelled, NULL) != 0)
            exit(1);
        while (__atomic_load_n(&made, __ATOMIC_ACQUIRE) < before + 20)
            usleep(100);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
    FILE *f = fopen("made", "w");
    if (!f || fprintf(f, "%u", made) < 0 || fclose(f) != 0)
        exit(1);
}

/* Killed right after an exec that failed. */
static void fail_to_become(void)
{
    char name[] = "passwd", *const argv[] = {name, NULL};
    fexecve(open("/etc/passwd", O_RDONLY | O_CLOEXEC), argv, environ);
    raise(SIGKILL);
}

static void *make_calls(void *n)
{
    calls(*(int *)n);
    return NULL;
}

/* A thread has its stack, and no more than that. */
static void thread_without_memory(void)
{
    pthread_attr_t small;
    pthread_t thread;
    int n = 1000;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    limit_memory(512 << 10);
    if (pthread_create(&thread, &small, make_calls, &n) != 0)
        exit(1);
    pthread_join(thread, NULL);
}

static void fork_both(void)
{
    fflush(stdout);
    pid_t pid = fork();
    calls(pid ? 30 : 50);
    if (pid == 0)
        exit(7);
    print_end_of("child", pid);
}

/* A fork whose first half ends in libc's own way, a new session, no standard output or error. What
 * started this waits for the end of the daemon by the other end of `kept`. */
static void become_daemon(void)
{
    fflush(stdout);
    int kept = dup(1);
    if (kept < 0 || daemon(1, 0) != 0)
        exit(1);
    calls(40);
}

static unsigned ready;
static void *call_for_ever(void *unused)
{
    calls(1000);
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    for (;; usleep(50)) /* not faster than can be written: nothing is lost */
        calls(1);
    return unused;
}

static void *exit_when_ready(void *unused)
{
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < THREADS)
        usleep(100);
    calls(5);
    _exit(3);
    return unused;
}

static void exit_in_a_thread(void)
{
    pthread_t t;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t, NULL, call_for_ever, NULL);
    pthread_create(&t, NULL, exit_when_ready, NULL);
    pthread_join(t, NULL);
}

static void spawn_children(void)
{
    char sh[] = "sh", c[] = "-c", end[] = "exit 6", *argv[] = {sh, c, end, NULL};
    pid_t pid = 0;
    posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
    print_end_of("posix_spawn", pid);
    pid = vfork();
    if (pid == 0)
        execve("/bin/sh", argv, environ);
    print_end_of("vfork", pid);
    pid = vfork();
    if (pid == 0)
        execve("/no/such/program", argv, environ);
    if (pid == 0)
        _exit(9);
    print_end_of("vfork that can't exec", pid);
    printf("system: %d\n", WEXITSTATUS(system("exit 8")));
    FILE *f = popen("echo popen: word", "r");
    for (int byte = f ? getc(f) : EOF; byte != EOF; byte = getc(f))
        putchar(byte);
    printf("pclose: %d\n", f ? pclose(f) : -1);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*work)(void);
    } ways[] = {
        {"close-all", close_all},      {"fork-both", fork_both},
        {"daemon", become_daemon},     {"thread-exit", exit_in_a_thread},
        {"children", spawn_children},  {"thread-memory", thread_without_memory},
        {"exec-kill", fail_to_become}, {"signals", call_under_signals},
        {"cancel", cancel_threads},
    };
    const char *way = argc > 1 ? argv[1] : "plain";
    if (!strcmp(way, "take-stderr")) /* before the first call */
        take_stderr();
    if (!strcmp(way, "break-stderr"))
        break_stderr();
    if (!strcmp(way, "no-memory"))
        limit_memory(8 << 20);
    calls(10);
    for (unsigned i = 0; i < sizeof ways / sizeof *ways; i++)
        if (!strcmp(ways[i].name, way))
            ways[i].work();
    calls(10);
    printf("at the end of %s\n", way);
    fflush(stdout);
    if (!strcmp(way, "stay")) /* until standard input ends */
        while (getchar() != EOF)
            ;
    if (!strcmp(way, "kill"))
        raise(SIGKILL);
    return 0;
}
