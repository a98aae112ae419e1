/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rt-rendezvous.h - how the ranks of a job without MPI find each other.
 *
 * Rank 0 listens at RT_ADDR, RT_PORT; every rank comes there and says where it listens itself; when
 * all have come rank 0 tells all of all. What is wrong with one rank is told to every rank that has
 * come: who is missing after RT_START_TIMEOUT seconds, whose RT_INTERFACE isn't there, who has the
 * same rank, or that rank 0 has no descriptors left. Then waits have a deadline, RT_START_TIMEOUT
 * and 10 s, until somebody watches over the ranks (rt_fabric_ops.started). Strangers are turned away.
 *
 * A port that two jobs share by mistake: a rank whose RT_JOB isn't rank 0's, also where one of the
 * two has none, is turned away, with a message, whatever its rank and size; the job goes on. Where
 * neither has one they can't be told apart: a rank that doesn't fit ends the job, and all are told.
 *
 * Settings, of the environment: RT_ADDR, a name or an address, IPv4 or IPv6, of rank 0's host (an
 * address must be one of it) · RT_PORT · RT_RANK, RT_SIZE, else those of the launcher ·
 * RT_INTERFACE, by whose address this rank takes part, else the one that leads to rank 0 ·
 * RT_START_TIMEOUT, in seconds (30) · RT_JOB, the same on all ranks, up to 63 bytes · RT_LISTEN_FD, on rank 0,
 * a socket that listens at RT_PORT, which stays open for the next rt_init. rt-run sets all of them.
 */
#ifndef RT_RENDEZVOUS_H
#define RT_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>

#include "rt-links.h"
#include "rt-topology.h"

/* What a rank says of itself. */
struct rt_card {
    int32_t pid;
    char memory[48];                /* rt_net_memory */
    char host[RT_HOST_MAX];         /* RT_HOST, else the host's name */
    char machine[RT_HOST_MAX + 32]; /* rt_net_machine */
    char problem[512];              /* why it can't take part; "" */
    union rt_net_place place;       /* where it listens */
};

struct rt_job {
    int rank, size;
    struct rt_word word;
    struct rt_card *cards; /* by rank; owned */
};

/* Reads the settings, meets the others, and leaves `links` ready for use. A program that no
 * launcher started is the only rank. Negative errno and a message. */
int rt_rendezvous(struct rt_job *ret, struct rt_links *links, char *message, size_t message_bytes);

#endif
