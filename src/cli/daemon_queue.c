/* The queues of a daemon's ports; see daemon_queue.h. */
#include "cli/daemon_queue.h"

#include "base/error.h"
#include "config/queue_section.h"
#include "net/net_error.h"

enum {
    TRAIN_MIN = 65536,        /* a train fits */
    EVENING_BYTES = 64 << 20, /* of a port whose queue only evens out */
    TRAINS = 4,               /* of a port that marks or trims, at least: senders send in trains */
};

/* Of a port that marks or trims: a few round trips between processes, less than their timeout. */
#define QUEUE_TIME (8 * GW_MS)

/* Keys besides the discipline's own. */
struct queue_keys {
    char capacity[GW_PARAM_TEXT_MAX];
};

static const struct gw_param params[] = {
    GW_PARAM(struct queue_keys, TEXT, capacity, NULL,
             "bytes that may wait for each port; none: 64MiB, or, if it marks or trims, what the "
             "rate passes in 8 ms, at least 256KiB"),
};

static const struct gw_algo table = {
    .name = "queue",
    .params = params,
    .param_count = sizeof(params) / sizeof(params[0]),
    .cfg_size = sizeof(struct queue_keys),
};

int gw_daemon_queue_read(const struct gw_document *document, struct gw_daemon_queue *queue)
{
    struct queue_keys keys;
    const struct gw_schema_part own = {.algo = &table, .cfg = &keys};
    struct gw_queue_section section = {.document = document,
                                       .value = gw_doc_value_get(document->root, "queue")};
    *queue = (struct gw_daemon_queue){.capacity = 0};
    int code = gw_queue_section_read(&section, "fifo", &queue->cfg, &own);
    if (code)
        return code;
    queue->qdisc = section.qdisc;
    code = gw_queue_section_shared(&section, "a train", TRAIN_MIN, &queue->shared);
    if (code || !keys.capacity[0])
        return code;
    code = gw_queue_section_capacity(&section, keys.capacity, 0, &queue->capacity);
    return code ? code : gw_queue_section_check(&section, queue->capacity, "a train", TRAIN_MIN);
}

static bool is_fifo(const struct gw_daemon_queue *queue)
{
    return &queue->qdisc->algo == gw_registry_find(&gw_qdisc_registry, "fifo");
}

int gw_daemon_queue_check(const struct gw_daemon_queue *queue, uint64_t rate_bps, char *error)
{
    if (is_fifo(queue) || rate_bps)
        return GW_OK;
    return gw_net_fail(error, GW_ERR_INVALID,
                       "queue: without a rate nothing waits here, and nothing would be marked or "
                       "trimmed: give a rate");
}

uint32_t gw_daemon_queue_bytes(const struct gw_daemon_queue *queue, uint64_t rate_bps)
{
    uint64_t bytes = rate_bps / 8 * (QUEUE_TIME / GW_US) / 1000000;
    if (bytes < TRAINS * TRAIN_MIN)
        bytes = TRAINS * TRAIN_MIN;
    if (is_fifo(queue))
        bytes = EVENING_BYTES;
    if (queue->capacity)
        bytes = queue->capacity;
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}
