/*
 * Where datagrams for one station wait: a bounded queue, into which the threads of all other
 * stations push, and from which its own takes. A full queue drops what comes, and counts it, as the
 * kernel does: whoever does not read harms itself alone.
 *
 * Invariant: `fd` is readable from the first push on until the owner has found the queue empty.
 */
#ifndef GW_NET_INBOX_H
#define GW_NET_INBOX_H

#include <pthread.h>
#include <sys/uio.h>

#include "net/sock_addr.h"

/* A datagram that waits. */
struct gw_inbox_item {
    struct gw_sock_addr from;
    uint32_t length;
    uint8_t tos;
    uint8_t bytes[];
};

struct gw_inbox {
    int fd;               /* an eventfd, which wakes the owner */
    uint32_t size;        /* bytes of a datagram at most; what is longer is cut */
    uint32_t items_max;   /* datagrams at most */
    size_t stride;        /* from one item to the next */
    uint8_t *items;       /* a ring */
    pthread_mutex_t lock; /* of all below */
    uint32_t head;  /* the first item that waits; the owner reads it and those behind unlocked */
    uint32_t count; /* of those that wait */
    bool is_signalled;
    uint64_t drops;
};

/* Room for `bytes` bytes of datagrams of up to `size`. Returns 0, GW_ERR_NO_MEMORY or
 * GW_ERR_SYSTEM; gw_inbox_fini() only after 0. */
int gw_inbox_init(struct gw_inbox *inbox, uint32_t size, uint32_t bytes);
void gw_inbox_fini(struct gw_inbox *inbox);

/* What is pushed: a datagram whose bytes lie in pieces. */
struct gw_inbox_push {
    struct gw_sock_addr from;
    uint8_t tos;
    const struct iovec *pieces;
    uint32_t piece_count;
};

/* By any thread: appends a copy, or drops it. */
void gw_inbox_push(struct gw_inbox *inbox, const struct gw_inbox_push *push);

/* By the owner: gives `count` items back, which it has taken off the front; then says how many
 * wait, and of how many that came there was no room. */
uint32_t gw_inbox_look(struct gw_inbox *inbox, uint32_t count, uint64_t *drops);

/* By the owner: the item `place` places behind the front; it stays until it is given back. */
struct gw_inbox_item *gw_inbox_at(const struct gw_inbox *inbox, uint32_t place);

#endif
