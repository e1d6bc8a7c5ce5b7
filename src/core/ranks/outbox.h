/*
 * Short messages that a mesh or a registrar has under way to others, a limited number at a time, so
 * that a job of a thousand ranks does not need a thousand flows: who is owed one waits.
 *
 * A message may be disowned, when its receiver has gone: its flow ends when it ends, and nobody
 * cares. Invariant: count is the number of places in use.
 */
#ifndef GW_CORE_OUTBOX_H
#define GW_CORE_OUTBOX_H

#include "core/host/endpoint.h"

enum {
    GW_OUTBOX_MAX = 32,
    GW_OUTBOX_NOBODY = UINT32_MAX, /* receiver of a message that was disowned */
};

struct gw_outbox_message {
    uint32_t flow;
    uint32_t tag;
    uint32_t to; /* its owner's number for the receiver, or GW_OUTBOX_NOBODY */
};

struct gw_outbox {
    struct gw_outbox_message messages[GW_OUTBOX_MAX];
    uint32_t count;
};

static inline bool gw_outbox_is_full(const struct gw_outbox *outbox)
{
    return outbox->count == GW_OUTBOX_MAX;
}

/* Takes note of a flow that has been started; there must be room. */
static inline void gw_outbox_add(struct gw_outbox *outbox, const struct gw_outbox_message *message)
{
    outbox->messages[outbox->count++] = *message;
}

/* Takes the message out whose end the event says; false: it is about something else. */
static inline bool gw_outbox_take(struct gw_outbox *outbox, const struct gw_event *event,
                                  struct gw_outbox_message *message)
{
    for (uint32_t i = 0; event->kind != GW_EVENT_RECEIVED && i < outbox->count; i++) {
        if (outbox->messages[i].flow != event->flow || outbox->messages[i].tag != event->tag)
            continue;
        *message = outbox->messages[i];
        outbox->messages[i] = outbox->messages[--outbox->count];
        return true;
    }
    return false;
}

/* Whether a message of this tag is under way to `to`. */
static inline bool gw_outbox_has(const struct gw_outbox *outbox, uint32_t to, uint32_t tag)
{
    for (uint32_t i = 0; i < outbox->count; i++)
        if (outbox->messages[i].to == to && outbox->messages[i].tag == tag)
            return true;
    return false;
}

/* Disowns what is under way to `to`. */
static inline void gw_outbox_disown(struct gw_outbox *outbox, uint32_t to)
{
    for (uint32_t i = 0; i < outbox->count; i++)
        if (outbox->messages[i].to == to)
            outbox->messages[i].to = GW_OUTBOX_NOBODY;
}

/* Forgets messages of this tag to `to`, whose flows were dropped. */
static inline void gw_outbox_forget(struct gw_outbox *outbox, uint32_t to, uint32_t tag)
{
    for (uint32_t i = 0; i < outbox->count;) {
        if (outbox->messages[i].to == to && outbox->messages[i].tag == tag)
            outbox->messages[i] = outbox->messages[--outbox->count];
        else
            i++;
    }
}

/* Whether anything is under way to somebody who has not gone. */
static inline bool gw_outbox_is_busy(const struct gw_outbox *outbox)
{
    for (uint32_t i = 0; i < outbox->count; i++)
        if (outbox->messages[i].to != GW_OUTBOX_NOBODY)
            return true;
    return false;
}

#endif
