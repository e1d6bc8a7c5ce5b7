/*
 * The scenario's `cc:`, `lb:`, `loss:` and `urgency:`: the algorithms that flows run, each with its
 * parameters.
 *
 * `loss:` chooses how senders detect losses; how many packets links lose is a fault (fault_list.c).
 */
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "config/loader.h"

static const char *const kind_others[] = {"kind", NULL};

/* One of `lb:`, `loss:`, `urgency:`. */
static const struct gw_algo *load_algorithm(struct gw_loader *loader,
                                            const struct gw_registry *registry, const char *initial,
                                            union gw_algo_cfg *cfg)
{
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, registry->kind);
    const struct gw_algo *algo =
        gw_schema_kind(&loader->document, section, registry->kind, registry, initial);
    if (!algo)
        return NULL;
    GW_ASSERT(algo->cfg_size <= sizeof(*cfg));
    const struct gw_schema schema = {
        .parts = {{algo, cfg, "preset"}}, .part_count = 1, .others = kind_others};
    if (gw_schema_read(&loader->document, section, &schema) != GW_OK)
        return NULL;
    gw_loader_write(loader, registry->kind, algo->name, &schema);
    return algo;
}

/* `cc:`, where "eqds+smartt" has the keys of both, and the presets of the latter; "eqds" alone has
 * its own. */
static int load_cc(struct gw_loader *loader)
{
    struct gw_transport *transport = &loader->scenario->transport;
    const struct gw_doc_value *section = gw_doc_value_get(loader->document.root, "cc");
    const char *name = gw_schema_name(&loader->document, section, "cc", "smartt");
    if (!name)
        return GW_ERR_INVALID;
    if (gw_transport_choose(transport, name) != GW_OK)
        return gw_schema_unknown(&loader->document, section, name, &gw_cc_registry,
                                 &gw_grant_registry);
    bool is_grant = transport->grant && strcmp(name, transport->grant->algo.name) == 0;
    struct gw_schema schema = {
        .parts = {{&transport->cc->algo, &transport->cc_cfg, is_grant ? NULL : "preset"}},
        .part_count = 1,
        .others = kind_others,
    };
    if (transport->grant)
        schema.parts[schema.part_count++] = (struct gw_schema_part){
            &transport->grant->algo, &transport->grant_cfg, is_grant ? "preset" : NULL};
    int error = gw_schema_read(&loader->document, section, &schema);
    if (!error)
        gw_loader_write(loader, "cc", name, &schema);
    return error;
}

int gw_loader_transport(struct gw_loader *loader)
{
    struct gw_transport *transport = &loader->scenario->transport;
    int error = load_cc(loader);
    if (error)
        return error;
    transport->lb = (const struct gw_lb_ops *)load_algorithm(loader, &gw_lb_registry, "reps",
                                                             &transport->lb_cfg);
    if (!transport->lb)
        return GW_ERR_INVALID;
    transport->loss = (const struct gw_loss_ops *)load_algorithm(loader, &gw_loss_registry, "trim",
                                                                 &transport->loss_cfg);
    if (!transport->loss)
        return GW_ERR_INVALID;
    const struct gw_algo *urgency =
        load_algorithm(loader, &gw_urgency_registry, "message", &transport->urgency_cfg);
    /* What flows do of themselves costs less. */
    transport->urgency =
        urgency == &gw_urgency_message.algo ? NULL : (const struct gw_urgency_ops *)urgency;
    if (!urgency)
        return GW_ERR_INVALID;
    if (transport->cc->on_report && transport->urgency && transport->urgency->ranks_by_place)
        return gw_document_error(&loader->document,
                                 gw_doc_value_get(loader->document.root, "urgency"), GW_ERR_INVALID,
                                 "urgency %s ranks packets by their place, and with cc %s they "
                                 "leave in no order",
                                 urgency->name, transport->cc->algo.name);
    return GW_OK;
}
