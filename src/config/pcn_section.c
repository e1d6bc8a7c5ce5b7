/*
 * The scenario's `pcn:`: whether bursts are announced, and what switches make of it.
 *
 * Defaults are those of core/switch/switch_notice.h: what is announced and does not come is
 * forgotten after four round trips.
 */
#include <stdlib.h>

#include "base/error.h"
#include "config/loader.h"
#include "core/switch/notice_budget.h"
#include "topo/memory.h"

enum {
    HOLD_RTTS = 4,
    SAVE_HOLDS = 4,
    ANNOUNCEMENTS_MAX = 1 << 20,
};

static const struct gw_param pcn_params[] = {
    GW_PARAM(struct gw_pcn_cfg, BOOL, enable, "no",
             "switches lower their marking thresholds before bursts, and these are announced"),
    GW_PARAM(struct gw_pcn_cfg, COUNT, floor, "5", "packets: no port's threshold is lowered below"),
    GW_PARAM(struct gw_pcn_cfg, TIME, lead, "0",
             "that bursts wait behind the answer to their notice; the paper's generator opens a "
             "connection then, which takes one round trip"),
    GW_PARAM(
        struct gw_pcn_cfg, TIME, hold, "0",
        "after which an announcement without its burst is forgotten; 0: four times the longest "
        "base RTT"),
    GW_PARAM(struct gw_pcn_cfg, Q16, share, "25%", "of all time that a port is kept low, at most"),
    GW_PARAM(struct gw_pcn_cfg, TIME, save, "0",
             "of that time a port can save up so much; 0: four times hold"),
    GW_PARAM(struct gw_pcn_cfg, COUNT, jobs, "64",
             "that a port knows at the same time for each link that they come by"),
    GW_PARAM(struct gw_pcn_cfg, COUNT, announcements, "4096",
             "that are open at a switch at the same time"),
};

static const struct gw_algo pcn_table = {
    .name = "pcn",
    .source = "PCN (Sensors 2021) section 3",
    .params = pcn_params,
    .param_count = sizeof(pcn_params) / sizeof(pcn_params[0]),
    .cfg_size = sizeof(struct gw_pcn_cfg),
};

static int check_range(const struct gw_loader *loader, const struct gw_doc_value *section,
                       const char *key, uint64_t value, uint64_t most)
{
    if (value >= 1 && value <= most)
        return GW_OK;
    return gw_document_error(&loader->document, gw_loader_place(section, key), GW_ERR_RANGE,
                             "%s must be from 1 to %llu, not %llu", key, (unsigned long long)most,
                             (unsigned long long)value);
}

static int check(const struct gw_loader *loader, const struct gw_doc_value *section)
{
    const struct gw_pcn_cfg *pcn = &loader->scenario->pcn;
    const struct gw_document *document = &loader->document;
    int error = check_range(loader, section, "floor", pcn->floor, GW_NOTICE_PACKETS_MAX);
    if (!error)
        error = check_range(loader, section, "jobs", pcn->jobs, GW_NOTICE_ACCOUNTS_MAX);
    if (!error)
        error =
            check_range(loader, section, "announcements", pcn->announcements, ANNOUNCEMENTS_MAX);
    if (error)
        return error;
    if (pcn->share < 0 || pcn->share > GW_Q16_ONE)
        return gw_document_error(document, gw_loader_place(section, "share"), GW_ERR_RANGE,
                                 "share must be from 0 to 100%%");
    const struct {
        const char *key;
        gw_time time;
    } times[] = {{"lead", pcn->lead}, {"hold", pcn->hold}, {"save", pcn->save}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i].time > GW_WORKLOAD_DELAY_MAX)
            return gw_document_error(document, gw_loader_place(section, times[i].key), GW_ERR_RANGE,
                                     "%s must be at most 5 days (432000s)", times[i].key);
    return GW_OK;
}

int gw_loader_pcn(struct gw_loader *loader)
{
    struct gw_pcn_cfg *pcn = &loader->scenario->pcn;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "pcn");
    const struct gw_schema schema = {.parts = {{.algo = &pcn_table, .cfg = pcn}}, .part_count = 1};
    if (section && section->kind != GW_DOC_VALUE_MAP)
        return gw_document_error(&loader->document, section, GW_ERR_INVALID,
                                 "expected a map, such as {enable: yes}");
    int error = gw_schema_read(&loader->document, section, &schema);
    if (!error)
        error = check(loader, section);
    if (error)
        return error;
    if (pcn->hold == 0)
        pcn->hold = HOLD_RTTS * loader->scenario->brtt_max;
    if (pcn->save == 0)
        pcn->save = SAVE_HOLDS * pcn->hold;
    gw_loader_write(loader, "pcn", NULL, &schema);
    return GW_OK;
}

int gw_loader_pcn_queue(struct gw_loader *loader)
{
    const struct gw_queue_cfg *queue = &loader->scenario->queue;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "pcn");
    if (!loader->scenario->pcn.enable)
        return GW_OK;
    void *state = gw_memory_zeroed(1, GW_QDISC_STATE_MAX);
    queue->qdisc->init(state, &queue->cfg, queue->capacity);
    bool marks = queue->qdisc->mark_at && queue->qdisc->mark_at(state, &queue->cfg, 0);
    free(state);
    if (marks)
        return GW_OK;
    return gw_document_error(&loader->document, gw_loader_place(section, "enable"), GW_ERR_INVALID,
                             "needs queues that mark, and queue: %s does not as it is set",
                             queue->qdisc->algo.name);
}
