/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window.h - for who hears of the program's steps: where RINGSCOPE_STEPS is set, capture goes on
 * and off with them.
 *
 * A step's beginning is told before it is recorded, and once it is, rs_window_leave is called: what
 * begins a step that isn't wanted ends the one before it.
 * Threads: any. Cost: one load where it isn't set.
 */
#ifndef RS_TRACER_WINDOW_H
#define RS_TRACER_WINDOW_H

#include "core.h"

extern volatile bool rs_window_by_steps RS_HIDDEN, rs_window_leaving RS_HIDDEN;
void rs_window_number_slow(uint32_t number) RS_HIDDEN;
void rs_window_text_slow(const char *text) RS_HIDDEN;
void rs_window_leave_slow(void) RS_HIDDEN;
/* "3,5-9,20-" */
bool rs_window_steps_are_right(const char *text) RS_HIDDEN;

RS_INLINE void rs_window_number(uint32_t number)
{
    if (RS_UNLIKELY(rs_window_by_steps))
        rs_window_number_slow(number);
}
/* Whatever a mark or range is called; names that are no step's are passed over. */
RS_INLINE void rs_window_text(const char *text)
{
    if (RS_UNLIKELY(rs_window_by_steps))
        rs_window_text_slow(text);
}
RS_INLINE void rs_window_leave(void)
{
    if (RS_UNLIKELY(rs_window_leaving))
        rs_window_leave_slow();
}

#endif
