/* SPDX-License-Identifier: Apache-2.0 */
#include "meaning.h"

static const struct {
    const gchar *name;
    guint32 rgb;
} table[RS_MEANS_COUNT] = {
    [RS_MEANS_STEP] = {"step", 0xd9dee6},         [RS_MEANS_RANGE] = {"range", 0xa9cdec},
    [RS_MEANS_SPAN] = {"tensor phase", 0xcfc3e3}, [RS_MEANS_AGREE] = {"negotiation", 0xf6dfae},
    [RS_MEANS_WAIT] = {"wait", 0xe69f00},         [RS_MEANS_COLLECTIVE] = {"collective", 0x0072b2},
    [RS_MEANS_MESSAGE] = {"message", 0x009e73},   [RS_MEANS_DEVICE] = {"device", 0x7b4fa3},
    [RS_MEANS_CALL] = {"other call", 0x8e96a3},   [RS_MEANS_IO] = {"file I/O", 0x8c6d31},
    [RS_MEANS_MARK] = {"mark", 0x2e3440},         [RS_MEANS_HOLE] = {"events lost", 0xc03a2b},
};

static RsMeaning meaning_of_call(const RsSig *sig)
{
    switch ((enum rs_op_class)sig->klass) {
    case RS_CLASS_COLL:
    case RS_CLASS_COLL_START:
        return RS_MEANS_COLLECTIVE;
    case RS_CLASS_SEND:
    case RS_CLASS_SEND_START:
    case RS_CLASS_RECV:
    case RS_CLASS_RECV_START:
    case RS_CLASS_SENDRECV:
    case RS_CLASS_PROBE:
    case RS_CLASS_COMPLETE:
    case RS_CLASS_RMA:
    case RS_CLASS_SYNC:
        return RS_MEANS_MESSAGE;
    case RS_CLASS_FILE:
        return RS_MEANS_IO;
    default:
        return RS_MEANS_CALL;
    }
}

static gboolean is_step(const RsModel *m, guint32 event)
{
    return rs_model_is_step(m, rs_model_rank_of(m, event), m->events.start_ns[event],
                            m->events.end_ns[event]);
}

RsMeaning rs_meaning_of(const RsModel *m, guint32 event)
{
    const RsSig *sig = rs_model_sig(m, event);
    switch ((RsKind)sig->kind) {
    case RS_KIND_RANGE:
        return is_step(m, event) ? RS_MEANS_STEP : RS_MEANS_RANGE;
    case RS_KIND_SPAN:
        return g_str_has_prefix(rs_model_str(m, sig->name), "NEGOTIATE_") ? RS_MEANS_AGREE
                                                                          : RS_MEANS_SPAN;
    case RS_KIND_DEVICE:
        return RS_MEANS_DEVICE;
    case RS_KIND_IO:
        return RS_MEANS_IO;
    case RS_KIND_HOLE:
        return RS_MEANS_HOLE;
    case RS_KIND_MARK:
    case RS_KIND_COUNTER:
        return RS_MEANS_MARK;
    case RS_KIND_CALL:
        break;
    }
    return meaning_of_call(sig);
}

const gchar *rs_meaning_name(RsMeaning meaning)
{
    return table[meaning].name;
}

guint32 rs_meaning_rgb(RsMeaning meaning)
{
    return table[meaning].rgb;
}

static guint32 shade(guint32 rgb, guint percent)
{
    guint32 r = (rgb >> 16 & 255) * percent / 100, g = (rgb >> 8 & 255) * percent / 100;
    return r << 16 | g << 8 | (rgb & 255) * percent / 100;
}

guint32 rs_meaning_event_rgb(const RsModel *m, guint32 event, RsMeaning meaning)
{
    static const guint shades[] = {100, 94, 88, 82, 97, 91, 85};
    if (meaning != RS_MEANS_RANGE && meaning != RS_MEANS_SPAN)
        return table[meaning].rgb;
    guint32 hash = g_str_hash(rs_model_str(m, rs_model_sig(m, event)->name)) * 2654435761u;
    return shade(table[meaning].rgb, shades[(hash >> 16) % G_N_ELEMENTS(shades)]);
}

guint32 rs_meaning_ink(guint32 rgb)
{
    guint light = (rgb >> 16 & 255) * 299 + (rgb >> 8 & 255) * 587 + (rgb & 255) * 114;
    return light > 140000 ? 0x1d2430 : 0xffffff;
}
