/*
 * Messages between ranks, by tags that the application chooses: point-to-point send and receive
 * over the mesh. A message waits for a way and for room, then is a flow of its own.
 */
#ifndef GW_CORE_MESSAGES_H
#define GW_CORE_MESSAGES_H

#include "core/parts.h"
#include "core/ranks/mesh.h"

struct gw_message {
    uint64_t call;  /* the caller's number; comes back */
    uint32_t rank;  /* the other one */
    uint32_t tag;   /* at most GW_MESH_MESSAGE_TAG_MAX; of messages between two ranks that are under
                       way at the same time, no two have the same */
    void *data;     /* NULL: no payload (simulation) */
    uint64_t bytes; /* to receive: at most so many; at least 1 */
    bool is_receive;
    const struct gw_parts *parts; /* NULL: all of it must arrive; else both ends have some. The
                                     stricter bound rules */
};

struct gw_message_done {
    uint64_t call;
    uint64_t bytes;   /* of the message that have arrived */
    uint32_t missing; /* fragments */
};

struct gw_messages;

/* `limit` messages may be under way, at most UINT16_MAX; as many flows, and as many posted. */
size_t gw_messages_size(uint32_t limit);
struct gw_messages *gw_messages_init(void *memory, uint32_t limit, struct gw_mesh *mesh,
                                     gw_time stall);

/* What messages with parts are sent by, which must outlive the messages, and the bytes of their
 * fragments. */
void gw_messages_set_parts(struct gw_messages *messages, const struct gw_transport *transport,
                           uint32_t fragment);

/* Returns 0, GW_ERR_NO_ROOM, or GW_ERR_INVALID: another receive of the rank and tag is under way.
 */
int gw_messages_start(struct gw_messages *messages, const struct gw_message *message, gw_time now);

/* Takes an event of the endpoint; false: it is not about a message under way here, or says that one
 * has failed, which is the mesh's matter. Without payload a message may come before its receive: it
 * is kept. */
bool gw_messages_event(struct gw_messages *messages, const struct gw_event *event, gw_time now);

/* Starts what waits for a way or room. */
void gw_messages_advance(struct gw_messages *messages, gw_time now);

/* The next message that is done; false: none. */
bool gw_messages_poll(struct gw_messages *messages, struct gw_message_done *done);

/* The rank of a receive of which nothing has come for `stall`; `world`: none. */
uint32_t gw_messages_overdue(struct gw_messages *messages, gw_time now);
gw_time gw_messages_deadline(const struct gw_messages *messages);

/* A rank that some message waits for; `world`: none. */
uint32_t gw_messages_awaited(const struct gw_messages *messages);

/* Memory of all messages is the callers' again. */
void gw_messages_drop(struct gw_messages *messages);

#endif
