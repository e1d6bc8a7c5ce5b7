/* `gradwire sim --list KIND`: what a registry holds, with parameters, defaults and sources. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/json_print.h"
#include "cli/report.h"
#include "core/coll/coll.h"
#include "core/grant/grant.h"
#include "core/urgency/urgency.h"
#include "workload/schedule/schedule.h"

enum {
    NAME_CHARS = 64, /* of a parameter */
};

static const struct gw_registry *const registries[] = {
    &gw_cc_registry,    &gw_lb_registry,       &gw_loss_registry,    &gw_grant_registry,
    &gw_qdisc_registry, &gw_coll_registry,     &gw_topo_registry,    &gw_workload_registry,
    &gw_cost_registry,  &gw_schedule_registry, &gw_urgency_registry,
};

static const char *type_name(const struct gw_param *param)
{
    static const char *const names[] = {
        [GW_PARAM_BOOL] = "yes|no", [GW_PARAM_COUNT] = "count", [GW_PARAM_Q16] = "number",
        [GW_PARAM_TIME] = "time",   [GW_PARAM_BYTES] = "bytes", [GW_PARAM_RATE] = "rate",
        [GW_PARAM_ENUM] = "choice", [GW_PARAM_TEXT] = "text",   [GW_PARAM_SIZES] = "list of bytes",
    };
    return param->type == GW_PARAM_ENUM ? param->choices : names[param->type];
}

/* What items of the entry's list are made of; NULL: it has no list. */
static const struct gw_algo *item_of(const struct gw_registry *registry, const struct gw_algo *algo)
{
    return registry == &gw_workload_registry
               ? ((const struct gw_workload_kind *)(const void *)algo)->item
               : NULL;
}

/* `list`: the key of which these are items; "": of none. */
static void print_params(const struct gw_algo *algo, const char *list)
{
    for (uint32_t i = 0; i < algo->param_count; i++) {
        const struct gw_param *param = &algo->params[i];
        char name[NAME_CHARS];
        snprintf(name, sizeof(name), "%s%s%s", list, list[0] ? "[]." : "", param->name);
        printf("    %-18s = %-10s (%s) %s\n", name, param->initial ? param->initial : "",
               type_name(param), param->help);
    }
}

static void print_algo(const struct gw_registry *registry, const struct gw_algo *algo)
{
    const struct gw_algo *item = item_of(registry, algo);
    printf("%s: %s\n", algo->name, algo->summary);
    if (algo->source)
        printf("    source: %s\n", algo->source);
    if (algo->state_size)
        printf("    state: %u bytes per flow or port\n", algo->state_size);
    print_params(algo, "");
    if (item)
        print_params(item, item->name);
    for (uint32_t i = 0; i < algo->preset_count; i++)
        printf("    preset %-11s %s [%s]\n", algo->presets[i].name, algo->presets[i].help,
               algo->presets[i].settings);
}

static json_t *params_json(const struct gw_algo *algo)
{
    json_t *params = json_array();
    for (uint32_t i = 0; i < algo->param_count; i++) {
        const struct gw_param *param = &algo->params[i];
        json_array_append_new(params, json_pack("{s:s, s:s, s:s?, s:s}", "name", param->name,
                                                "type", type_name(param), "default", param->initial,
                                                "help", param->help));
    }
    return params;
}

static json_t *algo_json(const struct gw_registry *registry, const struct gw_algo *algo)
{
    const struct gw_algo *item = item_of(registry, algo);
    json_t *presets = json_array();
    for (uint32_t i = 0; i < algo->preset_count; i++)
        json_array_append_new(presets, json_pack("{s:s, s:s, s:s}", "name", algo->presets[i].name,
                                                 "settings", algo->presets[i].settings, "help",
                                                 algo->presets[i].help));
    json_t *json =
        json_pack("{s:s, s:s, s:s?, s:i, s:o, s:o}", "name", algo->name, "summary", algo->summary,
                  "source", algo->source, "state_bytes", (int)algo->state_size, "params",
                  params_json(algo), "presets", presets);
    if (item)
        json_object_set_new(json, item->name, params_json(item));
    return json;
}

/* Whether the registry's names can stand behind the key `kind`: a grant is chosen by `cc`. */
static bool is_of_kind(const struct gw_registry *registry, const char *kind)
{
    return strcmp(registry->kind, kind) == 0 ||
           (registry == &gw_grant_registry && strcmp(kind, gw_cc_registry.kind) == 0);
}

char *gw_report_kinds(void)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        abort();
    for (size_t i = 0; i < sizeof(registries) / sizeof(registries[0]); i++)
        fprintf(stream, "%s%s", i ? ", " : "", registries[i]->kind);
    if (fclose(stream) != 0)
        abort();
    return text;
}

int gw_report_list(const char *kind, bool as_json)
{
    bool is_known = false;
    json_t *json = json_array();
    for (size_t i = 0; i < sizeof(registries) / sizeof(registries[0]); i++) {
        const struct gw_registry *registry = registries[i];
        if (!is_of_kind(registry, kind))
            continue;
        is_known = true;
        for (uint32_t j = 0; j < registry->count; j++) {
            if (as_json)
                json_array_append_new(json, algo_json(registry, registry->algos[j]));
            else
                print_algo(registry, registry->algos[j]);
        }
    }
    if (is_known && as_json)
        return gw_json_print(json, stdout, JSON_INDENT(2));
    json_decref(json);
    return is_known ? GW_EXIT_OK : GW_EXIT_USAGE;
}
