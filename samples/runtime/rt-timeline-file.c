/* SPDX-License-Identifier: Apache-2.0 */
#include "rt-timeline-file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rt-file.h"
#include "rt-nvtx.h"

#define GATHER_NS 50000000 /* events wait that long for company */
#define MANY      4096u    /* so many wait no longer */
#define TOO_MANY  (1u << 20)
#define LONGEST   2048u /* bytes of an event's text: a name of 255 bytes, each escaped, and more */

struct rt_timeline_file {
    char *path;
    int fd;
    uint64_t end; /* where the closing bracket stands: the thread's */
    char *text;   /* the thread's */
    size_t text_bytes, text_room;
    pthread_t thread;
    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t work;
    struct rt_timeline_event *events;
    size_t n, room;
    bool closing;
    int error;
};

/* ---- text ---- */

/* Bytes of the character at `s`, 0: it is none of UTF-8. */
static unsigned utf8_bytes(const unsigned char *s)
{
    const unsigned n = *s < 0x80   ? 1
                       : *s < 0xc2 ? 0
                       : *s < 0xe0 ? 2
                       : *s < 0xf0 ? 3
                       : *s < 0xf5 ? 4
                                   : 0;
    for (unsigned i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    const bool too_long = (*s == 0xe0 && s[1] < 0xa0) || (*s == 0xf0 && s[1] < 0x90);
    const bool no_character = (*s == 0xed && s[1] > 0x9f) || (*s == 0xf4 && s[1] > 0x8f);
    return too_long || no_character ? 0 : n;
}

/* Formatting by printf would cost most of what the thread takes from the others' processors. */
static char *put_text(char *to, const char *text)
{
    const size_t n = strlen(text);
    memcpy(to, text, n);
    return to + n;
}

static char *put_number(char *to, uint64_t number)
{
    char digits[20];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + number % 10);
    while (number /= 10);
    while (n > 0)
        *to++ = digits[--n];
    return to;
}

/* What isn't UTF-8 is taken for Latin-1. */
static char *put_escaped(char *to, const char *name)
{
    const unsigned char *s = (const unsigned char *)name;
    while (*s) {
        const unsigned n = utf8_bytes(s);
        if (n == 0 || *s < 0x20) {
            to += sprintf(to, "\\u%04x", *s++);
            continue;
        }
        if (*s == '"' || *s == '\\')
            *to++ = '\\';
        memcpy(to, s, n);
        to += n;
        s += n;
    }
    return to;
}

static char *put_name(char *to, uint32_t pid, const char *name)
{
    to = put_text(to, "{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": ");
    to = put_number(to, pid);
    to = put_escaped(put_text(to, ", \"args\": {\"name\": \""), name);
    to = put_text(to, "\"}},\n{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": ");
    to = put_number(to, pid);
    to = put_number(put_text(to, ", \"args\": {\"sort_index\": "), pid);
    return put_text(to, "}}");
}

/* An end has no name, a mark no tensor. */
static char *put_event(char *to, const struct rt_timeline_event *e)
{
    const char phase[] = {e->phase, '"', 0};
    if (e->phase == 'M')
        return put_name(to, e->pid, e->name);
    to = put_text(put_text(to, "{\"ph\": \""), phase);
    if (e->phase != 'E') {
        to = put_text(to, ", \"name\": \"");
        to = e->phase == 'X' ? put_number(to, (uint64_t)e->rank) : put_text(to, e->name);
        to = put_text(to, "\"");
    }
    to = put_number(put_text(to, ", \"ts\": "), e->us);
    if (e->phase == 'i')
        return put_text(to, ", \"s\": \"g\"}");
    to = put_number(put_text(to, ", \"pid\": "), e->pid);
    if (e->phase == 'X')
        to = put_text(to, ", \"dur\": 0");
    if (e->args) {
        to = put_text(put_text(to, ", \"args\": {"), e->args);
        to = put_text(to, "}");
    }
    return put_text(to, "}");
}

/* ---- the thread ---- */

/* The bracket that was there is there again. */
static void restore_end(struct rt_timeline_file *f)
{
    if (pwrite(f->fd, "]", 1, (off_t)f->end) == 1 && ftruncate(f->fd, (off_t)f->end + 1) != 0)
        return; /* the file ends in a piece of an event: readers of this format take that */
}

/* In place of the closing bracket, with a new one. */
static int write_text(struct rt_timeline_file *f)
{
    size_t done = 0;
    while (done < f->text_bytes) {
        ssize_t n = pwrite(f->fd, f->text + done, f->text_bytes - done, (off_t)(f->end + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int error = n < 0 ? -errno : -EIO;
            restore_end(f);
            return error;
        }
        done += (size_t)n;
    }
    f->end += f->text_bytes - 1;
    return 0;
}

static int add_text(struct rt_timeline_file *f, const struct rt_timeline_event *e)
{
    if (f->text_room - f->text_bytes < LONGEST) {
        const size_t room = 2 * f->text_room + 2 * LONGEST;
        char *grown = realloc(f->text, room);
        if (!grown)
            return -ENOMEM;
        f->text = grown;
        f->text_room = room;
    }
    memcpy(f->text + f->text_bytes, ",\n", 2);
    f->text_bytes += 2;
    f->text_bytes = (size_t)(put_event(f->text + f->text_bytes, e) - f->text);
    return 0;
}

static int write_events(struct rt_timeline_file *f, const struct rt_timeline_event *events,
                        size_t n)
{
    int error = 0;
    f->text_bytes = 0;
    for (size_t i = 0; i < n && !error; i++)
        error = add_text(f, &events[i]);
    if (error || n == 0)
        return error;
    f->text[f->text_bytes++] = ']'; /* there is room: LONGEST is more than any event */
    return write_text(f);
}

static void gather(struct rt_timeline_file *f)
{
    struct timespec until;
    while (f->n == 0 && !f->closing)
        pthread_cond_wait(&f->work, &f->lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += GATHER_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (f->n < MANY && !f->closing &&
           pthread_cond_timedwait(&f->work, &f->lock, &until) != ETIMEDOUT)
        ;
}

static void fail(struct rt_timeline_file *f, int error)
{
    if (!f->error)
        fprintf(stderr, "timeline %s: %s; no more of it is written\n", f->path,
                error == -EOVERFLOW ? "events come faster than they can be written"
                                    : strerror(-error));
    f->error = f->error ? f->error : error;
}

static void *write_all(void *data)
{
    struct rt_timeline_file *f = data;
    struct rt_timeline_event *spare = NULL;
    size_t spare_room = 0;
    struct rt_file_limit limit;
    rt_file_limit_begin(&limit); /* to the thread's end */
    rt_nvtx_name_thread("rt timeline");
    pthread_mutex_lock(&f->lock);
    for (;;) {
        gather(f);
        struct rt_timeline_event *events = f->events;
        const size_t n = f->n, room = f->room;
        if (n == 0 && f->closing)
            break;
        f->events = spare;
        f->room = spare_room;
        f->n = 0;
        const bool writes = !f->error;
        pthread_mutex_unlock(&f->lock);
        int error = writes ? write_events(f, events, n) : 0;
        pthread_mutex_lock(&f->lock);
        if (error)
            fail(f, error);
        spare = events;
        spare_room = room;
    }
    pthread_mutex_unlock(&f->lock);
    free(spare);
    return NULL;
}

/* ---- */

void rt_timeline_file_put(struct rt_timeline_file *f, const struct rt_timeline_event *event)
{
    pthread_mutex_lock(&f->lock);
    if (f->n == TOO_MANY)
        fail(f, -EOVERFLOW);
    if (f->n == f->room && !f->error) {
        const size_t room = f->room > 0 ? 2 * f->room : MANY;
        struct rt_timeline_event *grown = realloc(f->events, room * sizeof *grown);
        if (grown) {
            f->events = grown;
            f->room = room;
        } else {
            fail(f, -ENOMEM);
        }
    }
    if (!f->error) {
        f->events[f->n++] = *event;
        if (f->n == 1 || f->n == MANY)
            pthread_cond_signal(&f->work);
    }
    pthread_mutex_unlock(&f->lock);
}

static void free_file(struct rt_timeline_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    pthread_cond_destroy(&f->work);
    pthread_mutex_destroy(&f->lock);
    free(f->events);
    free(f->text);
    free(f->path);
    free(f);
}

/* The head, which has no event before it. */
static int write_head(struct rt_timeline_file *f, uint64_t epoch_us)
{
    struct rt_file_limit limit;
    f->text = malloc(LONGEST);
    if (!f->text)
        return -ENOMEM;
    f->text_room = LONGEST;
    f->text_bytes =
        (size_t)sprintf(f->text,
                        "[\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 0, \"args\": "
                        "{\"start_time_since_epoch_in_micros\":%llu}},\n"
                        "{\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": 0, \"args\": "
                        "{\"sort_index\": 0}}]",
                        (unsigned long long)epoch_us);
    rt_file_limit_begin(&limit);
    int error = write_text(f);
    rt_file_limit_end(&limit);
    return error;
}

static int start(struct rt_timeline_file *f, uint64_t epoch_us)
{
    f->fd = rt_file_open(f->path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (f->fd < 0)
        return f->fd;
    int error = write_head(f, epoch_us);
    if (!error)
        error = -pthread_create(&f->thread, NULL, write_all, f);
    if (error)
        unlink(f->path);
    return error;
}

struct rt_timeline_file *rt_timeline_file_new(const char *path, uint64_t epoch_us, int *ret_error)
{
    struct rt_timeline_file *f = calloc(1, sizeof *f);
    pthread_condattr_t monotonic;
    *ret_error = -ENOMEM;
    if (!f)
        return NULL;
    f->fd = -1;
    pthread_mutex_init(&f->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&f->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
    f->path = strdup(path);
    *ret_error = f->path ? start(f, epoch_us) : -ENOMEM;
    if (*ret_error) {
        free_file(f);
        f = NULL;
    }
    return f;
}

int rt_timeline_file_close(struct rt_timeline_file *f)
{
    if (!f)
        return 0;
    pthread_mutex_lock(&f->lock);
    f->closing = true;
    pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    const int error = f->error;
    free_file(f);
    return error;
}
