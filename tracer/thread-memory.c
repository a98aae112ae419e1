/* SPDX-License-Identifier: Apache-2.0 */
#include "thread-memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>

struct piece {
    struct piece *next;
    void *slot;
    size_t bytes;
    alignas(16) char memory[];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;

/* Newest first: a slot may itself lie in an older piece. */
static void unmap_all(void *first)
{
    void *none = NULL;
    for (struct piece *p = first, *next; p; p = next) {
        next = p->next;
        memcpy(p->slot, &none, sizeof none);
        munmap(p, p->bytes);
    }
}

static void make_key(void)
{
    have_key = pthread_key_create(&key, unmap_all) == 0;
}

void *rs_thread_memory(void *slot, size_t bytes)
{
    int saved = errno;
    pthread_once(&once, make_key);
    size_t all = sizeof(struct piece) + bytes;
    struct piece *p =
        have_key ? mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                 : MAP_FAILED;
    if (p != MAP_FAILED) {
        *p = (struct piece){pthread_getspecific(key), slot, all};
        if (pthread_setspecific(key, p) != 0) {
            munmap(p, all);
            p = MAP_FAILED;
        }
    }
    void *memory = p != MAP_FAILED ? p->memory : NULL;
    memcpy(slot, &memory, sizeof memory);
    errno = saved;
    return memory;
}
