/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What takes a rank's core away: another process (contend), or its own threads while it
 * communicates (comm-steals-cpu). The process is kept on one core before it has other threads, so
 * that all of them stay there; ranks take the cores they may use in turn.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "play.h"
#include "rt-fault-hooks.h"

static struct {
    cpu_set_t before;
    bool pinned;
    pid_t rival;
    bool steals;
    pthread_t thread;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t changed;
    int communicating;
    bool ending;
} core = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int pin(int rank)
{
    cpu_set_t one;
    if (sched_getaffinity(0, sizeof core.before, &core.before))
        return -errno;
    int skip = rank % CPU_COUNT(&core.before), cpu = 0;
    while (!CPU_ISSET(cpu, &core.before) || skip-- > 0)
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        return -errno;
    core.pinned = true;
    return 0;
}

/* ---- contend ---- */

/* Nothing of the parent's stays open here, or its launcher would wait for this process. */
static void be_rival(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    while (getppid() == parent)
        rt_faults_work(10 * 1000 * 1000);
    _exit(0);
}

static int start_rival(void)
{
    pid_t parent = getpid();
    core.rival = fork();
    if (core.rival == 0)
        be_rival(parent);
    return core.rival < 0 ? -errno : 0;
}

/* ---- comm-steals-cpu ---- */

/* Spins while the process communicates, as a library does that polls. */
static void *steal(void *unused)
{
    pthread_mutex_lock(&core.lock);
    while (!core.ending) {
        while (!core.ending && core.communicating == 0)
            pthread_cond_wait(&core.changed, &core.lock);
        pthread_mutex_unlock(&core.lock);
        rt_faults_work(100 * 1000);
        pthread_mutex_lock(&core.lock);
    }
    pthread_mutex_unlock(&core.lock);
    return unused;
}

static int start_thief(void)
{
    int error = pthread_create(&core.thread, NULL, steal, NULL);
    core.steals = !error;
    return -error;
}

void rt_fault_hook_communicating(bool now)
{
    if (!core.steals)
        return;
    pthread_mutex_lock(&core.lock);
    core.communicating += now ? 1 : -1;
    pthread_cond_signal(&core.changed);
    pthread_mutex_unlock(&core.lock);
}

/* ---- both ---- */

int rt_faults_share_core(const struct rt_faults *f)
{
    bool contends = rt_faults_find(f, RT_FAULT_CONTEND);
    bool steals = rt_faults_find(f, RT_FAULT_COMM_STEALS_CPU);
    int error = contends || steals ? pin(f->rank) : 0;
    if (!error && contends)
        error = start_rival();
    if (!error && steals)
        error = start_thief();
    return error;
}

void rt_faults_leave_core(void)
{
    if (core.rival > 0) {
        kill(core.rival, SIGKILL);
        waitpid(core.rival, NULL, 0);
        core.rival = 0;
    }
    if (core.steals) {
        pthread_mutex_lock(&core.lock);
        core.ending = true;
        pthread_cond_signal(&core.changed);
        pthread_mutex_unlock(&core.lock);
        pthread_join(core.thread, NULL);
        core.steals = false;
    }
    if (core.pinned)
        sched_setaffinity(0, sizeof core.before, &core.before);
    core.pinned = false;
}
