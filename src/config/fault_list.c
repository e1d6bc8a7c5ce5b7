/*
 * The scenario's `faults:`: a list of what fails, when, and until when. Here `loss` is what a link
 * does to packets; how senders detect it is the section `loss:` (transport_section.c). A file's
 * alias for a fault's key may be called so as well.
 *
 *     - {at: 20us, until: 1ms, link: [tor0, agg1], down: yes}
 *     - {at: 0, link: [tor0, agg1], rate: 0.25}       the link's rate is multiplied
 *     - {at: 0, link: [tor0, agg1], loss: 0.01}       or corrupt, duplicate
 *     - {at: 0, link: [tor0, agg1], reorder: 0.01, delay: 5us}
 *     - {at: 50us, node: core0, down: yes}
 *     - {at: 50us, until: 1ms, node: host3, crash: yes}
 *     - {at: 50us, until: 1ms, node: host3, sleep: yes}
 */
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "config/loader.h"
#include "topo/memory.h"

static const struct gw_schema fault_schema = {
    .others =
        (const char *const[]){"at", "until", "link", "node", "down", "rate", "loss", "corrupt",
                              "duplicate", "reorder", "delay", "crash", "sleep", NULL},
};

/* Reads the time `key` of a fault; "never" is allowed where `otherwise` is GW_TIME_NEVER. */
static int read_time(const struct gw_document *document, const struct gw_doc_value *item,
                     const char *key, gw_time otherwise, gw_time *time)
{
    const struct gw_doc_value *value = gw_doc_value_get(item, key);
    *time = otherwise;
    if (!value)
        return GW_OK;
    const char *text = gw_schema_text(document, value);
    if (!text)
        return GW_ERR_INVALID;
    if (otherwise == GW_TIME_NEVER && strcmp(text, "never") == 0)
        return GW_OK;
    int error = gw_parse_time(text, time);
    return error ? gw_schema_refuse(document, value, error, "a time such as 20us") : GW_OK;
}

/* `delay`, which belongs to `reorder` alone. */
static int read_delay(const struct gw_document *document, const struct gw_doc_value *item,
                      struct gw_fault *fault)
{
    const struct gw_doc_value *delay = gw_doc_value_get(item, "delay");
    bool reorders = fault->kind == GW_FAULT_LINK_REORDER;
    if (delay && !reorders)
        return gw_document_error(document, delay, GW_ERR_INVALID,
                                 "only a fault with reorder has a delay");
    if (reorders && !delay)
        return gw_document_error(document, item, GW_ERR_INVALID,
                                 "reorder needs delay: how late a packet is");
    int error = read_time(document, item, "delay", 0, &fault->delay);
    if (!error && reorders && fault->delay == 0)
        error = gw_document_error(document, delay, GW_ERR_RANGE, "delay must be above 0");
    return error;
}

/* Whether no link can have the fault. */
static bool is_of_node(const struct gw_fault *fault)
{
    return fault->kind == GW_FAULT_NODE_CRASH || fault->kind == GW_FAULT_HOST_SLEEP;
}

/* What happens: the one key that names a kind of fault. */
static int read_kind(const struct gw_document *document, const struct gw_doc_value *item,
                     struct gw_fault *fault)
{
    static const struct {
        const char *key;
        enum gw_fault_kind kind;
    } kinds[] = {{"down", GW_FAULT_LINK_DOWN},           {"rate", GW_FAULT_LINK_RATE},
                 {"loss", GW_FAULT_LINK_LOSS},           {"corrupt", GW_FAULT_LINK_CORRUPT},
                 {"duplicate", GW_FAULT_LINK_DUPLICATE}, {"reorder", GW_FAULT_LINK_REORDER},
                 {"crash", GW_FAULT_NODE_CRASH},         {"sleep", GW_FAULT_HOST_SLEEP}};
    const struct gw_doc_value *value = NULL;
    for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct gw_doc_value *found = gw_doc_value_get(item, kinds[i].key);
        if (found && value)
            return gw_document_error(document, found, GW_ERR_INVALID,
                                     "%s is already said; make it two faults", value->key);
        if (found) {
            value = found;
            fault->kind = kinds[i].kind;
        }
    }
    if (!value)
        return gw_document_error(document, item, GW_ERR_INVALID,
                                 "one of down, rate, loss, corrupt, duplicate, reorder, crash and "
                                 "sleep is missing");
    const char *text = gw_schema_text(document, value);
    bool yes = false;
    if (!text)
        return GW_ERR_INVALID;
    if (fault->kind == GW_FAULT_LINK_DOWN || is_of_node(fault))
        return gw_parse_bool(text, &yes) == GW_OK && yes
                   ? GW_OK
                   : gw_schema_refuse(document, value, GW_ERR_INVALID, "yes");
    if (fault->kind != GW_FAULT_LINK_RATE) {
        int error = gw_parse_chance(text, &fault->chance_q32);
        return error ? gw_schema_refuse(document, value, error, "a probability such as 0.01")
                     : GW_OK;
    }
    int error = gw_parse_q16(text, &fault->factor);
    if (!error && (fault->factor <= 0 || fault->factor > GW_Q16_ONE))
        error = GW_ERR_RANGE;
    return error ? gw_schema_refuse(document, value, error, "a part of the link's rate, up to 1")
                 : GW_OK;
}

static void add_fault(struct gw_scenario *scenario, const struct gw_fault *fault, uint32_t *room)
{
    scenario->faults = gw_memory_grow(scenario->faults, room, scenario->fault_count + 1,
                                      sizeof(scenario->faults[0]));
    scenario->faults[scenario->fault_count++] = *fault;
}

static int add_node_fault(struct gw_loader *loader, const struct gw_doc_value *node,
                          struct gw_fault *fault, uint32_t *room)
{
    const struct gw_document *document = &loader->document;
    const char *name = gw_schema_text(document, node);
    if (!name)
        return GW_ERR_INVALID;
    if (fault->kind == GW_FAULT_LINK_DOWN)
        fault->kind = GW_FAULT_NODE_DOWN;
    if (fault->kind != GW_FAULT_NODE_DOWN && !is_of_node(fault))
        return gw_document_error(document, node, GW_ERR_INVALID,
                                 "a node can only be down, crash or sleep");
    fault->node = gw_topo_find(&loader->scenario->topo, name);
    if (fault->node == UINT32_MAX)
        return gw_document_error(document, node, GW_ERR_UNKNOWN, "no node is called %s", name);
    if (fault->kind == GW_FAULT_HOST_SLEEP && fault->node >= loader->scenario->topo.host_count)
        return gw_document_error(document, node, GW_ERR_INVALID, "only a host can sleep");
    if (fault->kind == GW_FAULT_HOST_SLEEP && fault->until == GW_TIME_NEVER)
        return gw_document_error(document, node, GW_ERR_INVALID,
                                 "sleep needs until: when the host wakes");
    add_fault(loader->scenario, fault, room);
    return GW_OK;
}

/* One fault for each of the links that are named. */
static int add_link_faults(struct gw_loader *loader, const struct gw_doc_value *value,
                           struct gw_fault *fault, uint32_t *room)
{
    const struct gw_topo *topo = &loader->scenario->topo;
    struct gw_link_pick pick;
    if (is_of_node(fault))
        return gw_document_error(&loader->document, value, GW_ERR_INVALID,
                                 "a link cannot %s; a node can",
                                 fault->kind == GW_FAULT_NODE_CRASH ? "crash" : "sleep");
    int error = gw_loader_pick_links(loader, value, &pick);
    if (error)
        return error;
    for (uint32_t i = 0; i < pick.count; i++) {
        fault->link = gw_link_pick_port(topo, &pick, i)->link;
        for (uint32_t side = 0; side < 2 && fault->kind == GW_FAULT_LINK_RATE; side++) {
            uint64_t rate_bps = topo->links[fault->link].side[side].rate_bps;
            if (gw_q16_mul((gw_q16)rate_bps, fault->factor) < GW_RATE_BPS_MIN)
                return gw_document_error(&loader->document, value, GW_ERR_RANGE,
                                         "the rate that is left is below %d bit/s",
                                         GW_RATE_BPS_MIN);
        }
        add_fault(loader->scenario, fault, room);
    }
    return GW_OK;
}

static int read_fault(struct gw_loader *loader, const struct gw_doc_value *item, uint32_t *room)
{
    const struct gw_document *document = &loader->document;
    if (item->kind != GW_DOC_VALUE_MAP)
        return gw_document_error(
            document, item, GW_ERR_INVALID,
            "expected a map such as {at: 20us, link: [tor0, agg1], down: yes}");
    struct gw_fault fault = {0};
    int error = gw_schema_read(document, item, &fault_schema);
    if (!error && !gw_doc_value_get(item, "at"))
        error = gw_document_error(document, item, GW_ERR_INVALID, "at is missing");
    if (!error)
        error = read_time(document, item, "at", 0, &fault.at);
    if (!error)
        error = read_time(document, item, "until", GW_TIME_NEVER, &fault.until);
    if (!error && fault.until <= fault.at)
        error = gw_document_error(document, gw_doc_value_get(item, "until"), GW_ERR_RANGE,
                                  "must be later than at");
    if (!error)
        error = read_kind(document, item, &fault);
    if (!error)
        error = read_delay(document, item, &fault);
    if (error)
        return error;
    const struct gw_doc_value *link = gw_doc_value_get(item, "link");
    const struct gw_doc_value *node = gw_doc_value_get(item, "node");
    if (!link == !node)
        return gw_document_error(document, item, GW_ERR_INVALID,
                                 "either link or node must be given");
    return link ? add_link_faults(loader, link, &fault, room)
                : add_node_fault(loader, node, &fault, room);
}

int gw_loader_faults(struct gw_loader *loader)
{
    const struct gw_doc_value *list = gw_doc_value_get(loader->document.root, "faults");
    if (!list)
        return GW_OK;
    if (list->kind != GW_DOC_VALUE_LIST)
        return gw_document_error(&loader->document, list, GW_ERR_INVALID,
                                 "expected a list of faults");
    uint32_t room = 0;
    int error = GW_OK;
    for (uint32_t i = 0; i < list->count && !error; i++)
        error = read_fault(loader, list->items[i], &room);
    if (!error && loader->out && list->count) {
        fprintf(loader->out, "faults:\n");
        for (uint32_t i = 0; i < list->count; i++) {
            fprintf(loader->out, "  - ");
            gw_doc_value_write(list->items[i], loader->out);
            fputc('\n', loader->out);
        }
    }
    return error;
}
