/* SPDX-License-Identifier: Apache-2.0 */
#include "rt.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt-config.h"
#include "rt-fault-hooks.h"
#include "rt-file.h"
#include "rt-inside.h"
#include "rt-runtime.h"

struct rt_runtime rt_self;

static _Thread_local char last_error[32768]; /* holds the values of hundreds of ranks */

const char *rt_error(void)
{
    return last_error;
}

int rt_fail(int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(last_error, sizeof last_error, format, args);
    va_end(args);
    return error;
}

/* A child has no background thread, so that waiting would never end. What it has of the parent's
 * runtime stays as it is: locks may be held. */
static void in_child(void)
{
    rt_self.worker = NULL;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* A test that plants nothing proves nothing. */
static int check_faults(void)
{
    const char *text = getenv("RT_FAULT");
    if (!text || !*text || (rt_fault_hook_begun && rt_fault_hook_begun()))
        return 0;
    return rt_fail(-EINVAL,
                   "RT_FAULT is '%s', but this program plants no faults: it would call "
                   "rt_faults_begin (rt-fault.h) before rt_init",
                   text);
}

static void warn_of_unknown(void)
{
    const char *text;
    for (size_t at = 0; (text = rt_config_unknown(&at));)
        fprintf(stderr, "rt: %.*s is no setting of the runtime, and has no effect\n",
                (int)strcspn(text, "="), text);
}

int rt_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct rt_config config;
    char message[1024];
    if (rt_self.worker)
        return rt_fail(-EALREADY, "rt_init: already running");
    int error = rt_config_read(&config, message, sizeof message);
    if (error)
        return rt_fail(error, "%s", message);
    error = check_faults();
    if (error)
        return error;
    rt_self.table = rt_table_new();
    if (!rt_self.table)
        return rt_fail(-ENOMEM, "rt_init: no memory");
    rt_self.compression = config.compression;
    pthread_once(&once, watch_forks);
    rt_phases_init();
    rt_self.worker =
        rt_worker_new(&config, rt_self.table, &rt_self.topology, &error, message, sizeof message);
    if (rt_self.worker) {
        if (rt_self.topology.rank == 0)
            warn_of_unknown();
        return 0;
    }
    rt_phases_release();
    rt_table_free(rt_self.table);
    return rt_fail(error, "rt_init: %s", message);
}

int rt_shutdown(void)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "rt_shutdown: not running");
    int handle = rt_hand_over(rt_operation_new(RT_SHUTDOWN, RT_RESERVED "shutdown"), NULL);
    int error = handle < 0 ? handle : rt_wait(handle);
    if (error == -ENOMEM || error == -ECONNRESET)
        return error; /* the others don't know, or one is gone: the thread doesn't end */
    rt_worker_join(rt_self.worker);
    rt_timeline_release();
    rt_phases_release();
    rt_table_free(rt_self.table);
    memset(&rt_self, 0, sizeof rt_self);
    return error;
}

int rt_timeline_start(const char *path, int mark_cycles)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "rt_timeline_start: not running");
    if (!path)
        return rt_fail(-EINVAL, "rt_timeline_start: no path");
    int error = rt_self.topology.rank == 0 ? rt_timeline_open(path, mark_cycles) : 0;
    return error ? rt_fail(error, "timeline %s: %s", path,
                           error == -EBUSY ? "one is being written" : rt_file_why(error))
                 : 0;
}

int rt_timeline_stop(void)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "rt_timeline_stop: not running");
    int error = rt_timeline_close();
    return error ? rt_fail(error, "the timeline was not written whole: %s", strerror(-error)) : 0;
}

int rt_rank(void)
{
    return rt_self.worker ? rt_self.topology.rank : -ESHUTDOWN;
}
int rt_size(void)
{
    return rt_self.worker ? rt_self.topology.size : -ESHUTDOWN;
}
int rt_local_rank(void)
{
    return rt_self.worker ? rt_self.topology.local_rank : -ESHUTDOWN;
}
int rt_local_size(void)
{
    return rt_self.worker ? rt_self.topology.local_size : -ESHUTDOWN;
}
int rt_cross_rank(void)
{
    return rt_self.worker ? rt_self.topology.cross_rank : -ESHUTDOWN;
}
int rt_cross_size(void)
{
    return rt_self.worker ? rt_self.topology.cross_size : -ESHUTDOWN;
}

void *rt_buffer_alloc(uint64_t bytes)
{
    return rt_inside_alloc(bytes);
}

void rt_buffer_free(void *buffer)
{
    rt_inside_free_memory(buffer);
}

int rt_poll(int handle)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "rt_poll: the runtime is not running");
    int state = rt_table_poll(rt_self.table, handle);
    return state < 0 ? rt_fail(state, "rt_poll: no handle %d", handle) : state;
}

int rt_wait(int handle)
{
    if (!rt_self.worker)
        return rt_fail(-ESHUTDOWN, "rt_wait: the runtime is not running");
    char *text = NULL;
    int result = rt_table_wait(rt_self.table, handle, &text);
    if (result == -EINVAL && !text)
        return rt_fail(result, "rt_wait: no handle %d", handle);
    if (result < 0)
        rt_fail(result, "%s", text ? text : strerror(-result));
    free(text);
    return result;
}
