/* SPDX-License-Identifier: Apache-2.0 */
/* An MPI program of one rank that ends, forks, execs, ... in the way its argument names; what must
 * be recorded of each stands in test-life.py. Each CALLS is that many MPI_Barrier. */
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 10

static void calls(void)
{
    for (int i = 0; i < CALLS; i++)
        MPI_Barrier(MPI_COMM_SELF);
}

static void finalize(void)
{
    MPI_Finalize();
}

/* Up to the last moment: the tracer's own child ends while this process does. */
static void child_ended(int sig)
{
    static const char said[] = "heard of a child\n";
    if (write(1, said, sizeof(said) - 1) < 0)
        _exit(90);
}

/* The program's own malloc, as its lock would be held where a handler interrupts it: whoever
 * allocates from here on would wait for ever. */
static __thread int in_malloc;

static void check_malloc(void)
{
    static const char said[] = "allocates where malloc was interrupted\n";
    if (in_malloc)
        syscall(SYS_exit_group, write(1, said, sizeof(said) - 1) > 0 ? 91 : 92);
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);

void *malloc(size_t n)
{
    check_malloc();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    check_malloc();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    check_malloc();
    return __libc_realloc(p, n);
}

void free(void *p)
{
    check_malloc();
    __libc_free(p);
}

static void end_in_handler(int sig)
{
    in_malloc = 1;
    _exit(8);
}

static int wait_for(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return status;
}

static void close_everything(void)
{
    calls();
    /* Every file; Open MPI itself can't do without its sockets and pipes. */
    struct stat st;
    for (int fd = 3; fd < 1024; fd++)
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
            close(fd);
    /* The numbers are the program's: nothing of ours may go into its files. */
    int own[300];
    for (int i = 0; i < 300; i++)
        own[i] = open("/dev/null", O_WRONLY);
    FILE *f = fopen("own", "w+");
    for (int i = 0; i < 20000; i++)
        MPI_Barrier(MPI_COMM_SELF);
    fseek(f, 0, SEEK_END);
    printf("own file %ld, descriptors %s\n", ftell(f), own[299] > 0 ? "there" : "gone");
    fclose(f);
    unlink("own");
}

static void *make_calls(void *unused)
{
    calls();
    return unused;
}

static void many_threads(void)
{
    for (int i = 0; i < 50; i++) {
        pthread_t t;
        pthread_create(&t, NULL, make_calls, NULL);
        pthread_join(t, NULL);
    }
}

/* Another program, by each of the functions: what it prints is what it was given. */
static void become(const char *how)
{
    char echo[] = "sh", option[] = "-c", script[] = "echo $0 $OF_ITS_OWN", word[] = "word",
         variable[] = "OF_ITS_OWN=value";
    char *const argv[] = {echo, option, script, word, NULL}, *const env[] = {variable, NULL};
    const char *shell = "/bin/sh";
    if (!strcmp(how, "-l"))
        execl(shell, echo, option, script, word, NULL);
    if (!strcmp(how, "-lp"))
        execlp(echo, echo, option, script, word, NULL);
    if (!strcmp(how, "-le"))
        execle(shell, echo, option, script, word, NULL, env);
    if (!strcmp(how, "-v"))
        execv(shell, argv);
    if (!strcmp(how, "-vpe"))
        execvpe(echo, argv, env);
    if (!strcmp(how, "-fd"))
        fexecve(open(shell, O_RDONLY | O_CLOEXEC), argv, env);
    if (!strcmp(how, "-at"))
        execveat(AT_FDCWD, shell, argv, env, 0);
}

static int work(const char *way, char **argv)
{
    if (!strcmp(way, "fork-idle")) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(7);
        printf("child %d\n", WEXITSTATUS(wait_for(pid)));
    } else if (!strcmp(way, "exec-child")) {
        pid_t pid = fork();
        if (pid == 0)
            execlp("sh", "sh", "-c", "exit 5", NULL);
        printf("child %d\n", WEXITSTATUS(wait_for(pid)));
        printf("system %d\n", WEXITSTATUS(system("exit 6")));
    } else if (!strcmp(way, "exec-fails")) {
        char name[] = "nothing", *const nothing[] = {name, NULL};
        printf("exec %d\n", execv("/no/such/program", nothing));
        printf("execl %d\n", execl("/etc/passwd", "passwd", NULL));
        printf("fexecve %d\n",
               fexecve(open("/etc/passwd", O_RDONLY | O_CLOEXEC), nothing, nothing));
    } else if (!strcmp(way, "chdir")) {
        printf("chdir %d\n", chdir("/"));
    } else if (!strcmp(way, "close")) {
        close_everything();
    } else if (!strcmp(way, "threads")) {
        many_threads();
    }
    return 0;
}

/* What MPI allows then, and what any program does. */
static void go_on(void)
{
    int begun = 0, over = 0;
    char *text = malloc(100000);
    MPI_Initialized(&begun);
    MPI_Finalized(&over);
    if (text)
        snprintf(text, 100000, "begun %d, over %d", begun, over);
    printf("after the end: %s\n", text ? text : "no memory");
    free(text);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "plain";
    struct sigaction watch = {.sa_handler = child_ended}, end = {.sa_handler = end_in_handler};
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (!strcmp(way, "atexit"))
        atexit(finalize);
    if (!strcmp(way, "close-all")) /* neither MPI finds its way to MPI_Finalize after that */
        close_range(3, ~0u, 0);
    calls();
    work(way, argv);
    calls();
    printf("at the end of %s\n", way);
    fflush(stdout);
    if (!strcmp(way, "kill"))
        MPI_Recv(&argc, 1, MPI_INT, 0, 77, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    if (!strcmp(way, "close-all")) /* Open MPI's own child ends then, at some time */
        return 5;
    sigaction(SIGCHLD, &watch, NULL);
    sigaction(SIGTERM, &end, NULL);
    if (!strcmp(way, "handler"))
        raise(SIGTERM);
    if (!strcmp(way, "_exit"))
        _exit(3);
    if (!strcmp(way, "quick_exit"))
        quick_exit(4);
    if (!strcmp(way, "abort"))
        abort();
    if (!strncmp(way, "exec-to", 7))
        become(way + 7);
    if (!strcmp(way, "atexit"))
        return 0;
    MPI_Finalize();
    go_on();
    return 0;
}
