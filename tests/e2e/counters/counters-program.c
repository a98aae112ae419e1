/* SPDX-License-Identifier: Apache-2.0 */
/* For SECONDS: a child burns the processor on which the main thread computes, too, a thread sends
 * over loopback, memory is touched anew. Prints what was sent; "forks" as argument: at once in a
 * child of a fork. What must be counted stands in test-counters.py. */
#define SECONDS 4

#include <arpa/inet.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEPT ((size_t)96 << 20)
#define ANEW ((size_t)4 << 20)

static volatile int over;
static long long sent;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    exit(1);
}

static void *take(void *fd)
{
    char text[65536];
    while (read(*(int *)fd, text, sizeof(text)) > 0)
        ;
    return NULL;
}

static void *keep_loopback_busy(void *unused)
{
    static char text[65536];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(a);
    pthread_t taker;
    int at = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0);
    expect(bind(at, (struct sockaddr *)&a, n) == 0 && listen(at, 1) == 0, "listen");
    expect(getsockname(at, (struct sockaddr *)&a, &n) == 0, "getsockname");
    expect(connect(to, (struct sockaddr *)&a, n) == 0, "connect");
    int from = accept(at, NULL, NULL);
    pthread_create(&taker, NULL, take, &from);
    while (!over) {
        ssize_t done = write(to, text, sizeof(text));
        sent += done > 0 ? done : 0;
        usleep(2000);
    }
    close(to);
    pthread_join(taker, NULL);
    return unused;
}

/* Where the main thread runs, and nowhere else. */
static pid_t burn_beside(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    pid_t pid = fork();
    if (pid != 0) {
        sched_setaffinity(0, sizeof(here), &here);
        return pid;
    }
    sched_setaffinity(0, sizeof(here), &here);
    for (double end = now() + 2 * SECONDS; now() < end;)
        ;
    _exit(0);
}

static void compute_and_touch(char *kept)
{
    for (double end = now() + SECONDS; now() < end;) {
        char *anew = mmap(NULL, ANEW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect(anew != MAP_FAILED, "mmap");
        for (size_t i = 0; i < ANEW; i += 4096)
            anew[i] = kept[i % KEPT] = 1;
        munmap(anew, ANEW);
    }
}

/* What a fork's child has of its parent's is closed. */
static void look_for_parents_files(void)
{
    char parents[32], link[32], path[4096];
    int n = snprintf(parents, sizeof(parents), "/proc/%d/", (int)getppid());
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof(path));
        expect(length < n || memcmp(path, parents, (size_t)n) != 0, "a file of the parent's");
    }
}

static void run(void)
{
    pthread_t sender;
    MPI_Barrier(MPI_COMM_SELF); /* the capture of this process begins */
    char *kept = malloc(KEPT);
    memset(kept, 1, KEPT);
    pthread_create(&sender, NULL, keep_loopback_busy, NULL);
    pid_t burner = burn_beside();
    compute_and_touch(kept);
    kill(burner, SIGKILL);
    waitpid(burner, NULL, 0);
    over = 1;
    pthread_join(sender, NULL);
    free(kept);
    look_for_parents_files();
    printf("%lld\n", sent);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    pid_t pid = argc > 1 && strcmp(argv[1], "forks") == 0 ? fork() : -1;
    if (pid <= 0)
        run();
    if (pid == 0)
        exit(0);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    MPI_Finalize();
    return 0;
}
