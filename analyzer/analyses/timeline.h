/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - what each rank spent its time on, moment by moment: the one place that decides it.
 *
 * Model: a rank's run is cut into segments, each of one part (definitions.md section 13):
 *   - a rank with kernels on a device computes while a kernel runs, communicates (exposed) while
 *     only communication runs, is idle else;
 *   - any other rank computes whenever its main thread is in no recorded communication, wait or
 *     I/O. The main thread is the one with the step ranges, else the process's first.
 *   Communication on other threads or on a device while the main thread computes is hidden.
 *   A main thread that waits for such communication can't be seen in a call: it is taken to wait
 *   inside a range named like a wait, and, where steps have phases (ranges inside the step's), in
 *   the gaps between them while an operation of its rank is pending.
 * Within exposed communication, wait is what passes before the last member (or the other side of a
 * message) has come, and while nothing is being transferred to or from this rank.
 * MPI_Init, MPI_Finalize, and what lies before the first and after the last event, are idle.
 * While capture is switched off (RINGSCOPE_START and the like) a rank's time is no part's.
 * Own time is the time in which a rank is held up by nobody: all but exposed communication, wait
 * and the calls that open and close the libraries. What delays a rank in its own time is its own
 * doing. Threads: read-only once made.
 */
#ifndef RS_ANALYSES_TIMELINE_H
#define RS_ANALYSES_TIMELINE_H

#include "analysis.h"

G_BEGIN_DECLS

typedef enum {
    RS_PART_COMPUTE,
    RS_PART_EXPOSED,
    RS_PART_WAIT,
    RS_PART_IO,
    RS_PART_IDLE,
    RS_PART_OFF, /* capture was switched off: nobody knows */
    RS_PART_COUNT
} RsPart;

/* Lasts until the next one begins; the last one until the end of the run. */
typedef struct {
    gint64 start_ns;
    gint64 own_before_ns; /* own time of the rank up to start_ns */
    guint8 part;          /* RsPart */
    guint8 hidden;        /* communication runs behind this compute */
    guint8 own;
} RsSegment;

struct _RsTimeline {
    guint32 n;
    RsSegment *segments;
    gint64 end_ns;
    gboolean device;    /* computes on a device */
    guint32 main_track; /* RS_NONE for a rank without host tracks */
    gboolean blind;     /* communicates behind its main thread's back, and nothing tells when the
                         * main thread waits for it: exposed is a lower bound */
};

/* One for each rank of the model. Returned: free with rs_timelines_free. */
RsTimeline *rs_timelines_new(const RsModel *model);
void rs_timelines_free(RsTimeline *timelines, guint32 n);

/* Own time up to `ns`. */
gint64 rs_timeline_own_ns(const RsTimeline *timeline, gint64 ns);

RsPart rs_timeline_part_at(const RsTimeline *timeline, gint64 ns);

/* Adds what lies in [from, to) to parts[] and *hidden_ns. */
void rs_timeline_sum(const RsTimeline *timeline, gint64 from_ns, gint64 to_ns,
                     gint64 parts[RS_PART_COUNT], gint64 *hidden_ns);

G_END_DECLS
#endif
