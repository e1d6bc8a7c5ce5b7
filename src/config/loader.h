/*
 * What the files that load a scenario share. Include this from src/config only.
 */
#ifndef GW_CONFIG_LOADER_H
#define GW_CONFIG_LOADER_H

#include <stdio.h>

#include "config/document.h"
#include "config/scenario.h"
#include "config/schema.h"

struct gw_loader {
    struct gw_document document;
    struct gw_scenario *scenario;
    FILE *out; /* the resolved document is written here while it is read; NULL: nowhere */
};

/* As gw_scenario_load(); writes the resolved document to `out` unless that is NULL. */
int gw_scenario_resolve(struct gw_scenario *scenario, const char *file,
                        const struct gw_override *overrides, uint32_t override_count, char *why,
                        FILE *out);

/* Reads `topology:` into a finished and routed topology. Errors are in document.why. */
int gw_loader_topology(struct gw_loader *loader);

/* Reads `faults:`; needs the topology. */
int gw_loader_faults(struct gw_loader *loader);

/* workload_section.c: reads `workload:`; needs topology, host and `pcn:`. */
int gw_loader_workload(struct gw_loader *loader);

/* Read the sections of their names; the queue needs the scenario's host, bdp and workload. */
int gw_loader_host(struct gw_loader *loader);
int gw_loader_queue(struct gw_loader *loader);
/* `cc:`, `lb:` and `loss:`. */
int gw_loader_transport(struct gw_loader *loader);
int gw_loader_metrics(struct gw_loader *loader);

/* pcn_section.c: reads `pcn:`; needs the scenario's base RTT. */
int gw_loader_pcn(struct gw_loader *loader);
/* Whether queues can mark as announcements ask them to; needs `pcn:` and the queue. */
int gw_loader_pcn_queue(struct gw_loader *loader);
/*
 * thresholds.c: with which thresholds the tenants and jobs that an entry of the workload has added
 * announce their bursts; needs `pcn:` and the host.
 */
int gw_loader_announce(struct gw_loader *loader, const struct gw_doc_value *entry,
                       uint32_t first_tenant, uint32_t first_job);

/* claims_section.c: reads `claims:` into a sweep, and frees them; the latter also after an error.
 */
int gw_claims_load(const struct gw_document *document, struct gw_sweep *sweep);
void gw_claims_free(struct gw_sweep *sweep);

/* The key of a section for an error message, or the section where the key is not written. */
const struct gw_doc_value *gw_loader_place(const struct gw_doc_value *section, const char *key);

/* Writes a section that was read to `out`, if there is one; `kind` may be NULL. */
void gw_loader_write(const struct gw_loader *loader, const char *name, const char *kind,
                     const struct gw_schema *schema);

/* packet_cost.c: the keys of struct gw_host_cost_cfg in the section of the host. */
extern const struct gw_algo gw_loader_packet_cost;

/* Keys of the section of the queue, in bytes; 0: follows from the links. */
struct gw_lossless_options {
    bool lossless;
    uint64_t xoff, xon;
};

/*
 * headroom.c: resolves them, and with them the sizes at which switches and hosts pause their links;
 * needs host, topology and workload. *capacity is checked or, if the section does not say it, set
 * to what is needed.
 */
int gw_loader_lossless(struct gw_loader *loader, const struct gw_doc_value *section,
                       struct gw_lossless_options *options, uint64_t *capacity);

/* Parallel links between two nodes: ports [first, first + count) of `from`. */
struct gw_link_pick {
    uint32_t from;
    uint32_t first;
    uint32_t count; /* at least 1 */
};

/*
 * Reads "[tor0, agg1]", all links between two nodes, or "[tor0, agg1, 2]", one of them, from 0.
 * Needs finished ports.
 */
int gw_loader_pick_links(struct gw_loader *loader, const struct gw_doc_value *value,
                         struct gw_link_pick *pick);

/* The port number `i` of the pick. */
const struct gw_topo_port *gw_link_pick_port(const struct gw_topo *topo,
                                             const struct gw_link_pick *pick, uint32_t i);

#endif
