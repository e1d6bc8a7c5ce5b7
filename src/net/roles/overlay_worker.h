/*
 * A worker of one job on the overlay: an endpoint with a member and, once it has joined, a worker.
 *
 * Use: open (which adds its node to the loop), link its port 0, join, then reduce tensors, and poll
 * after every turn of the loop. GW_EVENT_JOINED says that calls are taken; the other events are as
 * the core posts them.
 */
#ifndef GW_NET_OVERLAY_WORKER_H
#define GW_NET_OVERLAY_WORKER_H

#include "core/control/member.h"
#include "net/roles/overlay.h"

struct gw_overlay_worker_cfg {
    struct gw_loop *loop;
    struct gw_pkt_pool *pool;
    uint32_t address;
    uint32_t job;
    uint32_t server; /* address; 0: not known yet */
    uint16_t rank;
    uint8_t notice;       /* gw_notice_option: how bursts are announced; the same on all workers */
    uint32_t incarnation; /* random, not 0 */
    uint32_t hdr;         /* bytes of IP, UDP and our header */
    uint32_t mtu;         /* payload bytes of a full packet */
    uint32_t tensors_max; /* in work at the same time */
    gw_time stall;        /* joining, leaving or a call without progress fails after so long */
    bool congestion_control;
    uint64_t seed;
};

struct gw_overlay_worker;

/* Returns 0, GW_ERR_INVALID (options that fit no endpoint) or GW_ERR_NO_MEMORY. */
int gw_overlay_worker_open(const struct gw_overlay_worker_cfg *cfg,
                           struct gw_overlay_worker **worker);

/* After the loop is closed: its packets go with the pool. */
void gw_overlay_worker_close(struct gw_overlay_worker *worker);

/* Its number in the loop. */
uint16_t gw_overlay_worker_node(const struct gw_overlay_worker *worker);

/* For flows beside the job's tensors. */
struct gw_endpoint *gw_overlay_worker_endpoint(struct gw_overlay_worker *worker);

/* Before it joins for the first time: the server's address has become known. */
void gw_overlay_worker_set_server(struct gw_overlay_worker *worker, uint32_t server);

/* As gw_member_join(), gw_member_leave() and gw_worker_reduce(). */
int gw_overlay_worker_join(struct gw_overlay_worker *worker, gw_time now);
int gw_overlay_worker_leave(struct gw_overlay_worker *worker, gw_time now);

/* Fails all calls in work, whose memory is the caller's then. It is out of the job. */
void gw_overlay_worker_fail(struct gw_overlay_worker *worker, gw_time now);

int gw_overlay_worker_reduce(struct gw_overlay_worker *worker, const struct gw_tensor *tensor,
                             gw_time now);

/* The next event; false when there is none. */
bool gw_overlay_worker_poll(struct gw_overlay_worker *worker, struct gw_event *event);

/* NULL before it has joined. */
const struct gw_worker_stats *gw_overlay_worker_stats(const struct gw_overlay_worker *worker);

const struct gw_member *gw_overlay_worker_member(const struct gw_overlay_worker *worker);

#endif
