/*
 * The queues of a daemon's ports: the section `queue:` of its config, which is that of a scenario
 * (config/queue_section.h) without what only simulated switches have.
 */
#ifndef GW_CLI_DAEMON_QUEUE_H
#define GW_CLI_DAEMON_QUEUE_H

#include "config/document.h"
#include "core/qdisc/qdisc.h"
#include "core/switch/shared_buffer.h"

struct gw_daemon_queue {
    const struct gw_qdisc_ops *qdisc;
    union gw_algo_cfg cfg;
    struct gw_shared_buffer shared; /* by all ports */
    uint64_t capacity;              /* bytes; 0: as the rate says */
};

/* Reads the section of a config, if it is there. Returns 0, or a negative error with document->why
 * set. */
int gw_daemon_queue_read(const struct gw_document *document, struct gw_daemon_queue *queue);

/* For check(), with the rate of ports; 0: none. */
int gw_daemon_queue_check(const struct gw_daemon_queue *queue, uint64_t rate_bps, char *error);

/* What may wait for a port of this rate. */
uint32_t gw_daemon_queue_bytes(const struct gw_daemon_queue *queue, uint64_t rate_bps);

#endif
