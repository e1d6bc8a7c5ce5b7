/*
 * `queue:`, and what a scenario's has besides: links that hold data back.
 *
 * A scenario's defaults are the preset smt-text: the queues of SMaRTT section 4. What makes queues
 * lossless is in headroom.c.
 */
#include "config/queue_section.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "config/loader.h"
#include "topo/memory.h"

/* `queue:` besides the discipline's own parameters. */
struct queue_options {
    char capacity[GW_PARAM_TEXT_MAX];
    struct gw_lossless_options pause;
};

static const char *const kind_others[] = {"kind", NULL};

static const struct gw_param queue_params[] = {
    {.name = "capacity",
     .type = GW_PARAM_TEXT,
     .offset = offsetof(struct queue_options, capacity),
     .initial = "1bdp",
     .help = "bytes of data per port, or a multiple of the bandwidth-delay product"},
    {.name = "lossless",
     .type = GW_PARAM_BOOL,
     .offset = offsetof(struct queue_options, pause.lossless),
     .initial = "no",
     .help = "hold data back on the links instead of dropping it (IEEE 802.1Qbb)"},
    {.name = "xoff",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct queue_options, pause.xoff),
     .initial = "0",
     .help = "a link is paused when a switch holds more than this of its data; 0: what the longest "
             "link needs to stay busy and two packets"},
    {.name = "xon",
     .type = GW_PARAM_BYTES,
     .offset = offsetof(struct queue_options, pause.xon),
     .initial = "0",
     .help = "and goes on when it holds no more than this; 0: two packets below xoff"},
};

static const struct gw_algo queue_table = {
    .name = "queue",
    .params = queue_params,
    .param_count = sizeof(queue_params) / sizeof(queue_params[0]),
    .cfg_size = sizeof(struct queue_options),
};

static const struct gw_param shared_params[] = {
    GW_PARAM(struct gw_queue_shared, BYTES, shared, "0",
             "bytes of the pool that the ports of a switch share; 0: none"),
    GW_PARAM(struct gw_queue_shared, Q16, shared_alpha, "1",
             "one port may hold this multiple of the pool's free space"),
    GW_PARAM(struct gw_queue_shared, Q16, shared_alpha_important, "0",
             "the same for packets that are important (ECN-capable) or control; 0: shared_alpha"),
};

static const struct gw_algo shared_table = {
    .name = "queue",
    .params = shared_params,
    .param_count = sizeof(shared_params) / sizeof(shared_params[0]),
    .cfg_size = sizeof(struct gw_queue_shared),
};

int gw_queue_section_read(struct gw_queue_section *section, const char *initial,
                          union gw_algo_cfg *cfg, const struct gw_schema_part *own)
{
    const struct gw_algo *algo =
        gw_schema_kind(section->document, section->value, "queue", &gw_qdisc_registry, initial);
    if (!algo)
        return GW_ERR_INVALID;
    section->qdisc = (const struct gw_qdisc_ops *)algo;
    section->schema = (struct gw_schema){
        .parts = {{algo, cfg, "preset"}, *own, {&shared_table, &section->keys, NULL}},
        .part_count = 3,
        .others = kind_others,
    };
    return gw_schema_read(section->document, section->value, &section->schema);
}

/* "1bdp", "0.5bdp", or bytes. */
static int parse_capacity(const char *text, uint32_t bdp, uint64_t *bytes)
{
    static const char suffix[] = "bdp";
    char number[GW_PARAM_TEXT_MAX];
    size_t length = strlen(text), suffix_length = sizeof(suffix) - 1;
    if (bdp == 0 || length < suffix_length || strcmp(text + length - suffix_length, suffix) != 0)
        return gw_parse_bytes(text, bytes);
    memcpy(number, text, length - suffix_length);
    number[length - suffix_length] = '\0';
    gw_q16 factor;
    int error = gw_parse_q16(number, &factor);
    if (error)
        return error;
    if (factor < 0)
        return GW_ERR_RANGE;
    *bytes = (uint64_t)gw_q16_mul(factor, bdp);
    return GW_OK;
}

int gw_queue_section_capacity(const struct gw_queue_section *section, const char *text,
                              uint32_t bdp, uint64_t *bytes)
{
    int error = parse_capacity(text, bdp, bytes);
    return error ? gw_document_error(section->document, gw_loader_place(section->value, "capacity"),
                                     error, "%s: %s; expected a size such as 1MiB%s",
                                     gw_error_message(error), text, bdp ? " or 1bdp" : "")
                 : GW_OK;
}

int gw_queue_section_check(const struct gw_queue_section *section, uint64_t capacity,
                           const char *what, uint32_t least)
{
    if (capacity >= least && capacity <= UINT32_MAX)
        return GW_OK;
    return gw_document_error(section->document, gw_loader_place(section->value, "capacity"),
                             GW_ERR_RANGE,
                             "capacity is %llu bytes; it must hold %s of %u bytes and be below "
                             "4 GiB",
                             (unsigned long long)capacity, what, least);
}

/* What an idle pool lets one port hold. */
static uint64_t shared_part(uint64_t shared, gw_q16 alpha)
{
    return alpha >= GW_Q16_ONE ? shared : (uint64_t)gw_q16_mul((gw_q16)shared, alpha);
}

static int refuse_shared(const struct gw_queue_section *section, const char *key,
                         const char *sentence)
{
    return gw_document_error(section->document, gw_loader_place(section->value, key), GW_ERR_RANGE,
                             "%s", sentence);
}

int gw_queue_section_shared(const struct gw_queue_section *section, const char *what,
                            uint32_t least, struct gw_shared_buffer *shared)
{
    const struct gw_queue_shared *keys = &section->keys;
    if (keys->shared_alpha == 0)
        return refuse_shared(section, "shared_alpha", "shared_alpha must be above 0");
    *shared = (struct gw_shared_buffer){.bytes = keys->shared,
                                        .alpha = keys->shared_alpha,
                                        .alpha_important = keys->shared_alpha_important};
    gw_q16 alpha = keys->shared_alpha_important && keys->shared_alpha_important < keys->shared_alpha
                       ? keys->shared_alpha_important
                       : keys->shared_alpha;
    if (keys->shared && (keys->shared < least || shared_part(keys->shared, alpha) < least))
        return gw_document_error(section->document, gw_loader_place(section->value, "shared"),
                                 GW_ERR_RANGE,
                                 "one port's part of the pool must hold %s of %u "
                                 "bytes",
                                 what, least);
    return GW_OK;
}

bool gw_queue_section_marks(const struct gw_qdisc_ops *qdisc, const union gw_algo_cfg *cfg,
                            uint32_t capacity)
{
    void *state = gw_memory_zeroed(1, GW_QDISC_STATE_MAX);
    qdisc->init(state, cfg, capacity);
    bool marks = qdisc->mark_at && qdisc->mark_at(state, cfg, 0);
    free(state);
    return marks;
}

/* A queue that a link has of its own must hold a packet, too. */
static int check_link_queues(const struct gw_loader *loader, uint32_t full)
{
    const struct gw_topo *topo = &loader->scenario->topo;
    for (uint32_t i = 0; i < topo->link_count; i++)
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t bytes = topo->links[i].side[side].queue_bytes;
            if (bytes != 0 && bytes < full)
                return gw_document_error(
                    &loader->document, gw_doc_value_get(loader->document.root, "topology"),
                    GW_ERR_RANGE,
                    "the queue of the link between %s and %s is %u bytes; it "
                    "must hold a packet of %u bytes",
                    topo->nodes[topo->links[i].side[0].node].name,
                    topo->nodes[topo->links[i].side[1].node].name, bytes, full);
        }
    return GW_OK;
}

int gw_loader_queue(struct gw_loader *loader)
{
    const struct gw_document *document = &loader->document;
    struct gw_scenario *scenario = loader->scenario;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "queue");
    struct gw_queue_section queue = {.document = document, .value = section};
    struct queue_options options;
    const struct gw_schema_part own = {.algo = &queue_table, .cfg = &options};
    uint64_t capacity;
    uint32_t full = gw_scenario_packet_max(scenario);
    int error = gw_queue_section_read(&queue, "trim", &scenario->queue.cfg, &own);
    if (!error)
        error = gw_queue_section_capacity(&queue, options.capacity, scenario->bdp, &capacity);
    if (!error)
        error = gw_loader_lossless(loader, section, &options.pause, &capacity);
    if (!error)
        error = gw_queue_section_check(&queue, capacity, "a packet", full);
    if (!error)
        error = gw_queue_section_shared(&queue, "a packet", full, &scenario->queue.shared);
    if (error)
        return error;
    if (queue.keys.shared && options.pause.lossless)
        return gw_document_error(document, gw_loader_place(section, "shared"), GW_ERR_INVALID,
                                 "shared needs lossless: no; a pool can run out");
    if (queue.qdisc->drops_early && options.pause.lossless)
        return gw_document_error(document, gw_loader_place(section, "lossless"), GW_ERR_INVALID,
                                 "%s drops data before a queue is full", queue.qdisc->algo.name);
    if (options.pause.lossless && queue.qdisc->delays_control &&
        queue.qdisc->delays_control(scenario->queue.cfg.bytes))
        return gw_document_error(document, gw_loader_place(section, "lossless"), GW_ERR_INVALID,
                                 "control_weight needs lossless: no; control is never held back");
    error = check_link_queues(loader, full);
    if (error)
        return error;
    scenario->queue.qdisc = queue.qdisc;
    scenario->queue.capacity = (uint32_t)capacity;
    snprintf(options.capacity, sizeof(options.capacity), "%lluB", (unsigned long long)capacity);
    gw_loader_write(loader, "queue", queue.qdisc->algo.name, &queue.schema);
    return GW_OK;
}
