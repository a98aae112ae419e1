/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow link and the lossy one: stands before libc's connect() and accept(), and on sockets
 * between the two logical hosts limits how fast the kernel sends (SO_MAX_PACING_RATE), or has it
 * throw away what comes in, drawn by segment, before TCP sees it (a socket filter): so TCP finds
 * out, sends again and slows down as after any loss.
 *
 * Which sockets: ranks of all logical hosts are processes of one machine, and their addresses look
 * alike. So the process at the other end is looked up: its socket in /proc/net/tcp, that socket's
 * owner in /proc/<pid>/fd, the owner's RT_HOST in /proc/<pid>/environ. Needs nothing but the same
 * user, and happens once for a connection.
 *
 * How fast: the link's rate is what all its connections carry together, each way. The kernel paces
 * single connections, so each gets its share: rate / flows. Flows is the number of connections that
 * carry data at once; by default the number of ranks on this host (RT_HOST_RANKS, from on-hosts),
 * which is right for the runtime's hierarchical allreduce, where each rank of a host has a partner.
 * A flat ring has one connection between two hosts: flows=1.
 *
 * Beneath MPI and everything that watches it; a program without the fault pays one test.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "play.h"

/* The bad links that end at this host. */
static struct {
    int n;
    struct link {
        int far;              /* the host at the other end */
        uint64_t bytes_per_s; /* for one connection; 0: not limited */
        double percent;       /* lost */
    } link[RT_FAULT_MAX];
} links;

static int flows_of(const struct rt_fault *fault)
{
    const int ranks = rt_faults_host_ranks();
    return fault->flows > 0 ? fault->flows : ranks > 0 ? ranks : 1;
}

/* A wrong RT_FAULT or RT_HOST_RANKS is reported by the program, which reads it too. */
static void set_up(void)
{
    struct rt_faults faults;
    char message[256];
    const int host = rt_faults_host_number(getenv("RT_HOST"));
    if (host < 0 || rt_faults_read(&faults, message, sizeof message))
        return;
    for (int i = 0; i < faults.n; i++) {
        const struct rt_fault *f = &faults.fault[i];
        if (f->kind != RT_FAULT_SLOW_LINK && f->kind != RT_FAULT_LOSS)
            continue;
        if (f->hosts[0] != host && f->hosts[1] != host)
            continue;
        links.link[links.n++] = (struct link){
            .far = f->hosts[f->hosts[0] == host],
            .bytes_per_s = (uint64_t)(f->mbps * 1e6 / 8 / flows_of(f)),
            .percent = f->percent,
        };
    }
}

static bool has_bad_link(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_up);
    return links.n > 0;
}

/* ---- who is at the other end ---- */

static int port_of(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    return -1;
}

/* The socket whose own port is `port` and that is connected to `peer_port`, or else listens; by its
 * inode, 0 none. A line: "sl: address:port address:port state ...", the inode is field 10. */
static unsigned long inode_in(const char *table, int port, int peer_port)
{
    char line[512];
    unsigned long inode = 0;
    FILE *f = fopen(table, "re");
    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        unsigned own, far, state;
        unsigned long found;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %x %*s %*s %*s %*u %*u %lu", &own,
                   &far, &state, &found) != 4 ||
            own != (unsigned)port)
            continue;
        const unsigned listening = 10;
        if (far == (unsigned)peer_port && found != 0)
            inode = found;
        else if (state == listening && inode == 0)
            inode = found;
    }
    fclose(f);
    return inode;
}

static bool process_has(const char *pid, const char *wanted)
{
    char path[300], target[64];
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *fds = opendir(path);
    bool found = false;
    for (struct dirent *e; fds && !found && (e = readdir(fds));) {
        ssize_t n = readlinkat(dirfd(fds), e->d_name, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        found = strcmp(target, wanted) == 0;
    }
    if (fds)
        closedir(fds);
    return found;
}

/* RT_HOST in the environment that the process began with. */
static int host_of_process(const char *pid)
{
    char path[300], *word = NULL;
    size_t room = 0;
    int host = -1;
    snprintf(path, sizeof path, "/proc/%s/environ", pid);
    FILE *f = fopen(path, "re");
    while (f && host < 0 && getdelim(&word, &room, 0, f) > 0)
        if (strncmp(word, "RT_HOST=", 8) == 0)
            host = rt_faults_host_number(word + 8);
    free(word);
    if (f)
        fclose(f);
    return host;
}

/* The logical host of the process that has that socket; -1 where it has none, or isn't found. */
static int host_of_inode(unsigned long inode)
{
    char wanted[64];
    int host = -1;
    snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
    DIR *proc = opendir("/proc");
    for (struct dirent *e; proc && host < 0 && (e = readdir(proc));)
        if (isdigit((unsigned char)e->d_name[0]) && process_has(e->d_name, wanted))
            host = host_of_process(e->d_name);
    if (proc)
        closedir(proc);
    return host;
}

static int host_at(const struct sockaddr_storage *peer, int own_port)
{
    int port = port_of(peer);
    unsigned long inode = port < 0 ? 0 : inode_in("/proc/net/tcp", port, own_port);
    if (inode == 0 && port >= 0)
        inode = inode_in("/proc/net/tcp6", port, own_port);
    return inode == 0 ? -1 : host_of_inode(inode);
}

/* The filter keeps nothing of a segment, or all. */
/* A test that plants nothing proves nothing. */
static void must_be_planted(int failed, const char *what)
{
    if (!failed)
        return;
    fprintf(stderr, "RT_FAULT: %s can't be planted on a socket: %s\n", what, strerror(errno));
    _exit(2);
}

static void lose(int fd, double percent)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)(percent / 100 * UINT32_MAX), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    const struct sock_fprog filter = {sizeof code / sizeof *code, code};
    must_be_planted(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), "loss");
}

static void spoil(int fd, const struct sockaddr_storage *peer)
{
    struct sockaddr_storage own;
    socklen_t length = sizeof own;
    int saved = errno;
    int far =
        getsockname(fd, (struct sockaddr *)&own, &length) == 0 ? host_at(peer, port_of(&own)) : -1;
    for (int i = 0; i < links.n; i++) {
        const struct link *l = &links.link[i];
        if (l->far != far)
            continue;
        if (l->bytes_per_s > 0)
            must_be_planted(setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &l->bytes_per_s,
                                       sizeof l->bytes_per_s),
                            "slow-link");
        if (l->percent > 0)
            lose(fd, l->percent);
    }
    errno = saved;
}

/* ---- what the program calls ---- */

static void *next_definition(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    static int (*next)(int, const struct sockaddr *, socklen_t);
    if (!next)
        *(void **)&next = next_definition("connect");
    int result = next(fd, address, length);
    struct sockaddr_storage peer = {0};
    if ((result == 0 || errno == EINPROGRESS) && length <= sizeof peer && has_bad_link()) {
        memcpy(&peer, address, length);
        spoil(fd, &peer);
    }
    return result;
}

static void spoil_accepted(int fd)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer;
    int saved = errno;
    if (fd >= 0 && has_bad_link() && getpeername(fd, (struct sockaddr *)&peer, &length) == 0)
        spoil(fd, &peer);
    errno = saved;
}

int accept(int fd, struct sockaddr *address, socklen_t *length)
{
    static int (*next)(int, struct sockaddr *, socklen_t *);
    if (!next)
        *(void **)&next = next_definition("accept");
    int result = next(fd, address, length);
    spoil_accepted(result);
    return result;
}

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    static int (*next)(int, struct sockaddr *, socklen_t *, int);
    if (!next)
        *(void **)&next = next_definition("accept4");
    int result = next(fd, address, length, flags);
    spoil_accepted(result);
    return result;
}
