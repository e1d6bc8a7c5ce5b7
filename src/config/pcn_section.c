/*
 * `pcn:`: whether bursts are announced, and what switches make of it.
 *
 * A scenario's defaults are those of core/switch/switch_notice.h: what is announced and does not
 * come is forgotten after four round trips.
 */
#include "config/pcn_section.h"

#include "base/error.h"
#include "config/loader.h"
#include "config/queue_section.h"
#include "core/switch/notice_budget.h"

enum {
    HOLD_RTTS = 4,
    SAVE_HOLDS = 4,
    ANNOUNCEMENTS_MAX = 1 << 20,
};

static const struct gw_param pcn_params[] = {
    GW_PARAM(struct gw_pcn_cfg, BOOL, enable, "no",
             "switches lower their marking thresholds before bursts, and these are announced"),
    GW_PARAM(struct gw_pcn_cfg, COUNT, floor, "5", "packets: no port's threshold is lowered below"),
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
    /* The last: of hosts, and of no switch. */
    GW_PARAM(struct gw_pcn_cfg, TIME, lead, "0",
             "that bursts wait behind the answer to their notice; the paper's generator opens a "
             "connection then, which takes one round trip"),
};

#define PARAM_COUNT (sizeof(pcn_params) / sizeof(pcn_params[0]))

static const struct gw_algo pcn_table = {
    .name = "pcn",
    .source = "PCN (Sensors 2021) section 3",
    .params = pcn_params,
    .param_count = PARAM_COUNT,
    .cfg_size = sizeof(struct gw_pcn_cfg),
};

static const struct gw_algo switch_table = {
    .name = "pcn",
    .source = "PCN (Sensors 2021) section 3",
    .params = pcn_params,
    .param_count = PARAM_COUNT - 1,
    .cfg_size = sizeof(struct gw_pcn_cfg),
};

struct gw_schema gw_pcn_section_schema(struct gw_pcn_cfg *pcn, bool has_hosts)
{
    return (struct gw_schema){
        .parts = {{.algo = has_hosts ? &pcn_table : &switch_table, .cfg = pcn}}, .part_count = 1};
}

/* A section with its document, for what is wrong with it. */
struct place {
    const struct gw_document *document;
    const struct gw_doc_value *section;
};

static int check_range(const struct place *place, const char *key, uint64_t value, uint64_t most)
{
    if (value >= 1 && value <= most)
        return GW_OK;
    return gw_document_error(place->document, gw_loader_place(place->section, key), GW_ERR_RANGE,
                             "%s must be from 1 to %llu, not %llu", key, (unsigned long long)most,
                             (unsigned long long)value);
}

static int check(const struct place *place, const struct gw_pcn_cfg *pcn)
{
    int error = check_range(place, "floor", pcn->floor, GW_NOTICE_PACKETS_MAX);
    if (!error)
        error = check_range(place, "jobs", pcn->jobs, GW_NOTICE_ACCOUNTS_MAX);
    if (!error)
        error = check_range(place, "announcements", pcn->announcements, ANNOUNCEMENTS_MAX);
    if (error)
        return error;
    if (pcn->share > GW_Q16_ONE)
        return gw_document_error(place->document, gw_loader_place(place->section, "share"),
                                 GW_ERR_RANGE, "share must be from 0 to 100%%");
    const struct {
        const char *key;
        gw_time time;
    } times[] = {{"lead", pcn->lead}, {"hold", pcn->hold}, {"save", pcn->save}};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
        if (times[i].time > GW_WORKLOAD_DELAY_MAX)
            return gw_document_error(place->document, gw_loader_place(place->section, times[i].key),
                                     GW_ERR_RANGE, "%s must be at most 5 days (432000s)",
                                     times[i].key);
    return GW_OK;
}

int gw_pcn_section_read(const struct gw_document *document, const struct gw_doc_value *section,
                        const struct gw_schema *schema)
{
    const struct place place = {document, section};
    if (section && section->kind != GW_DOC_VALUE_MAP)
        return gw_document_error(document, section, GW_ERR_INVALID,
                                 "expected a map, such as {enable: yes}");
    int error = gw_schema_read(document, section, schema);
    return error ? error : check(&place, schema->parts[0].cfg);
}

int gw_loader_pcn(struct gw_loader *loader)
{
    struct gw_pcn_cfg *pcn = &loader->scenario->pcn;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "pcn");
    const struct gw_schema schema = gw_pcn_section_schema(pcn, true);
    int error = gw_pcn_section_read(&loader->document, section, &schema);
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
    if (gw_queue_section_marks(queue->qdisc, &queue->cfg, queue->capacity))
        return GW_OK;
    return gw_document_error(&loader->document, gw_loader_place(section, "enable"), GW_ERR_INVALID,
                             "needs queues that mark, and queue: %s does not as it is set",
                             queue->qdisc->algo.name);
}
