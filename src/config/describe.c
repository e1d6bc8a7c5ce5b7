/*
 * The resolved scenario as YAML: what was read, with every default written out. It loads again to
 * the same scenario; a sweep is left out, since it describes many.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "config/loader.h"

static void write_head(const struct gw_scenario *scenario, FILE *out)
{
    const struct gw_topo *topo = &scenario->topo;
    fprintf(out, "# %u hosts, %u switches, %u links, %u flows\n", topo->host_count,
            topo->node_count - topo->host_count, topo->link_count, scenario->workload.flow_count);
    fprintf(out, "# base RTT of the longest path %llu ps, bandwidth-delay product %u bytes\n",
            (unsigned long long)scenario->brtt_max, scenario->bdp);
}

char *gw_scenario_describe(const char *file, const struct gw_override *overrides,
                           uint32_t override_count, char *why)
{
    char *body = NULL, *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&body, &size);
    struct gw_scenario scenario;
    if (!out) {
        snprintf(why, GW_WHY_MAX, "%s", gw_error_message(GW_ERR_NO_MEMORY));
        return NULL;
    }
    int error = gw_scenario_resolve(&scenario, file, overrides, override_count, why, out);
    fclose(out);
    if (!error) {
        out = open_memstream(&text, &size);
        if (out) {
            write_head(&scenario, out);
            fputs(body, out);
            fclose(out);
        } else {
            snprintf(why, GW_WHY_MAX, "%s", gw_error_message(GW_ERR_NO_MEMORY));
        }
        gw_scenario_free(&scenario);
    }
    free(body);
    return text;
}
