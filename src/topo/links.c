/*
 * Explicit topology: hosts, switches and links as listed. A switch and the hosts that hang on it
 * first are a group; a switch without hosts may go anywhere.
 */
#include "topo/links.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

static int add_nodes(struct gw_topo *topo, const char *const *names, uint32_t count, bool is_switch,
                     gw_time delay, char *why, size_t why_size)
{
    const char *list = is_switch ? "switches" : "hosts";
    for (uint32_t i = 0; i < count; i++) {
        if (names[i][0] == '\0' || strlen(names[i]) >= sizeof(topo->nodes[0].name)) {
            snprintf(why, why_size, "%s: a name must have 1 to %zu characters: %s", list,
                     sizeof(topo->nodes[0].name) - 1, names[i]);
            return GW_ERR_INVALID;
        }
        if (gw_topo_find(topo, names[i]) != UINT32_MAX) {
            snprintf(why, why_size, "%s: the name %s is used twice", list, names[i]);
            return GW_ERR_INVALID;
        }
        gw_topo_add_node(topo, is_switch, GW_GROUP_ANY, delay, "%s", names[i]);
    }
    return GW_OK;
}

/* A switch becomes the group of its hosts. */
static void join_group(struct gw_topo *topo, uint32_t host, uint32_t sw)
{
    if (host >= topo->host_count || sw < topo->host_count)
        return;
    if (topo->nodes[sw].group == GW_GROUP_ANY)
        topo->nodes[sw].group = sw - topo->host_count;
    if (topo->nodes[host].group == GW_GROUP_ANY)
        topo->nodes[host].group = topo->nodes[sw].group;
}

static int add_link(struct gw_topo *topo, const struct gw_topo_links_item *item, char *why,
                    size_t why_size)
{
    uint32_t ends[2];
    for (uint32_t i = 0; i < 2; i++) {
        ends[i] = gw_topo_find(topo, item->ends[i]);
        if (ends[i] == UINT32_MAX) {
            snprintf(why, why_size, "links: no node is called %s", item->ends[i]);
            return GW_ERR_UNKNOWN;
        }
    }
    if (ends[0] == ends[1]) {
        snprintf(why, why_size, "links: a link from %s to itself", item->ends[0]);
        return GW_ERR_INVALID;
    }
    uint32_t link = gw_topo_add_link(topo, ends[0], ends[1], item->rate_bps, item->latency);
    for (uint32_t i = 0; i < 2; i++) {
        topo->links[link].side[i].queue_bytes = item->queue_bytes;
        join_group(topo, ends[i], ends[!i]);
    }
    return GW_OK;
}

static int build(struct gw_topo *topo, const void *options, char *why, size_t why_size)
{
    const struct gw_topo_links *cfg = options;
    int error = gw_topo_check_range("hosts", cfg->host_count, 1, UINT16_MAX, why, why_size);
    if (!error)
        error = gw_topo_check_range("switches", cfg->switch_count, 0, UINT16_MAX - cfg->host_count,
                                    why, why_size);
    if (!error)
        error = add_nodes(topo, cfg->hosts, cfg->host_count, false, cfg->fabric.host_delay, why,
                          why_size);
    if (!error)
        error = add_nodes(topo, cfg->switches, cfg->switch_count, true, cfg->fabric.switch_latency,
                          why, why_size);
    for (uint32_t i = 0; i < cfg->link_count && !error; i++)
        error = add_link(topo, &cfg->links[i], why, why_size);
    return error;
}

static const struct gw_param params[] = {
    GW_TOPO_FABRIC_PARAMS(struct gw_topo_links),
};

const struct gw_topo_kind gw_topo_links = {
    .algo = {.name = "links",
             .summary = "an explicit list: hosts, switches and links",
             .source = "the scenario",
             .params = params,
             .param_count = sizeof(params) / sizeof(params[0]),
             .cfg_size = sizeof(struct gw_topo_links)},
    .build = build,
};
