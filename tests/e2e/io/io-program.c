/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on files that take long for their size, beside small ones, pipes, and /proc, in the folder
 * that is the first argument. What must be recorded stands in test-io.py. */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE ((size_t)24 << 20)

static char *memory;

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    printf("wrong: %s (%s)\n", what, strerror(errno));
    exit(1);
}

static int fresh(const char *name, int flags)
{
    int fd = open(name, flags, 0640);
    expect(fd >= 0, name);
    return fd;
}

static void write_all_ways(void)
{
    struct iovec v[2] = {{memory, LARGE / 2}, {memory + LARGE / 2, LARGE / 2}};
    int fd = fresh("written", O_RDWR | O_CREAT);
    errno = 42;
    expect(write(fd, memory, LARGE) == (ssize_t)LARGE && errno == 42, "write");
    expect(pwrite(fd, memory, LARGE, 0) == (ssize_t)LARGE, "pwrite");
    expect(lseek(fd, 0, SEEK_SET) == 0 && writev(fd, v, 2) == (ssize_t)LARGE, "writev");
    expect(fsync(fd) == 0, "fsync");
    expect(pread(fd, memory, LARGE, 0) == (ssize_t)LARGE, "pread");
    expect(lseek(fd, 0, SEEK_SET) == 0 && readv(fd, v, 2) == (ssize_t)LARGE, "readv");
    expect(lseek(fd, 0, SEEK_SET) == 0 && read(fd, memory, LARGE) == (ssize_t)LARGE, "read");
    expect(errno == 42, "errno");
    struct stat st;
    expect(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0640, "mode");
    close(fd);
}

static void by_stdio(void)
{
    FILE *f = fopen("by stdio", "w+");
    expect(f && fwrite(memory, 1, LARGE, f) == LARGE && fflush(f) == 0, "fwrite");
    rewind(f);
    expect(fread(memory, LARGE / 4, 4, f) == 4, "fread");
    fclose(f);
}

static void small(void)
{
    char text[64];
    int fd = fresh("small", O_RDWR | O_CREAT | O_TRUNC);
    for (int i = 0; i < 2000; i++) {
        expect(pwrite(fd, "small", 5, 0) == 5 && pread(fd, text, sizeof(text), 0) == 5, "small");
        expect(open("none such", O_RDONLY) < 0 && errno == ENOENT, "an error's number");
    }
    close(fd);
}

static void *write_late(void *fd)
{
    usleep(50000);
    expect(write(*(int *)fd, "late", 4) == 4, "write to a pipe");
    return NULL;
}

static void no_files(void)
{
    int ends[2];
    char text[4096];
    pthread_t thread;
    expect(pipe(ends) == 0, "pipe");
    pthread_create(&thread, NULL, write_late, &ends[1]);
    expect(read(ends[0], text, sizeof(text)) == 4, "read of a pipe");
    pthread_join(thread, NULL);
    for (int i = 0; i < 20; i++) {
        int fd = fresh("/proc/self/smaps", O_RDONLY);
        while (read(fd, text, sizeof(text)) > 0)
            ;
        close(fd);
    }
}

static void *read_for_ever(void *fd)
{
    char text[4];
    expect(read(*(int *)fd, text, sizeof(text)) < -1, "a read that never ends");
    return NULL;
}

static void cancelled(void)
{
    int ends[2];
    void *result;
    pthread_t thread;
    expect(pipe(ends) == 0, "pipe");
    pthread_create(&thread, NULL, read_for_ever, &ends[0]);
    usleep(20000);
    pthread_cancel(thread);
    expect(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED, "cancelled");
}

/* Calls no MPI: no capture, and its parent's stays as it is. */
static void in_child(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int fd = fresh("of the child", O_RDWR | O_CREAT);
        expect(write(fd, memory, LARGE) == (ssize_t)LARGE, "write in a child");
        exit(0);
    }
    expect(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

static void *behind(void *unused)
{
    int fd = fresh("behind", O_RDWR | O_CREAT);
    expect(write(fd, memory, LARGE) == (ssize_t)LARGE, "write behind");
    close(fd);
    return unused;
}

static void in_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, behind, NULL);
    pthread_join(thread, NULL);
}

/* One record of MPI, none of I/O: it is the library that writes. */
static void by_mpi(void)
{
    MPI_File f;
    expect(MPI_File_open(MPI_COMM_SELF, "by MPI", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL,
                         &f) == 0,
           "MPI_File_open");
    expect(MPI_File_write(f, memory, (int)LARGE, MPI_BYTE, MPI_STATUS_IGNORE) == 0, "MPI write");
    MPI_File_close(&f);
}

int main(int argc, char **argv)
{
    memory = calloc(1, LARGE);
    expect(argc > 1 && chdir(argv[1]) == 0 && memory, "chdir");
    int early = fresh("early", O_RDWR | O_CREAT);
    expect(write(early, memory, LARGE) == (ssize_t)LARGE, "write before MPI_Init");
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    write_all_ways();
    by_stdio();
    small();
    no_files();
    cancelled();
    in_child();
    in_thread();
    by_mpi();
    MPI_Finalize();
    printf("done\n");
    return 0;
}
