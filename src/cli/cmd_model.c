/* `gradwire model`: tables of neural networks, and how long a device computes them. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/json_print.h"
#include "cli/option.h"
#include "workload/model/compute.h"

enum {
    KEY_DEVICE = 256,
    KEY_BATCH,
    KEY_JSON,
    BATCH_DEFAULT = 32,
    WHY_MAX = 512,
};

struct model_args {
    const char *name; /* NULL: list all */
    const char *device;
    uint32_t batch; /* 0: not given */
    bool json;
};

static const struct argp_option options[] = {
    {"device", KEY_DEVICE, "NAME", 0, "also compute times on 2080Ti or V100", 0},
    {"batch", KEY_BATCH, "N", 0, "samples of a worker in an iteration (32)", 0},
    {"json", KEY_JSON, 0, 0, "print one JSON value", 0},
    {0},
};

static const char doc[] =
    "Lists the models of the workload `training`, or prints one: its layers with their parameters, "
    "bytes of gradients and multiply-accumulates. FILE.csv is a table of your own."
    "\vExample:\n  gradwire model resnet50 --device 2080Ti --batch 32\n";

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct model_args *args = state->input;
    uint64_t batch = 0;
    error_t error;
    switch (key) {
    case KEY_DEVICE:
        args->device = text;
        return 0;
    case KEY_BATCH:
        error = gw_option_number("batch", text, 1, GW_PLAN_BATCH_MAX, &batch);
        args->batch = (uint32_t)batch;
        return error;
    case KEY_JSON:
        args->json = true;
        return 0;
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        return 0;
    case ARGP_KEY_ARG:
        if (!args->name) {
            args->name = text;
            return 0;
        }
        gw_complain("model: '%s': one model is enough", text);
        return EINVAL;
    case ARGP_KEY_END:
        if (args->device && !args->name) {
            gw_complain("--device=%s: of which model? 'gradwire model' lists them", args->device);
            return EINVAL;
        }
        if (args->batch && !args->device) {
            gw_complain("--batch=%u: needs --device", args->batch);
            return EINVAL;
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static double mib(uint64_t params)
{
    return (double)params * 4 / (1 << 20);
}

static double us(gw_time time)
{
    return (double)time / GW_US;
}

static json_t *totals_json(const struct gw_model *model)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "name", model->name, "layers",
                     (json_int_t)model->layer_count, "tensors", (json_int_t)model->tensor_count,
                     "params", (json_int_t)model->params, "bytes", (json_int_t)model->params * 4,
                     "macs", (json_int_t)model->macs);
}

static int list_models(bool as_json)
{
    json_t *list = json_array();
    if (!as_json)
        printf("%-18s %7s %8s %12s %8s %8s\n", "model", "layers", "tensors", "params", "MiB",
               "GMAC");
    for (const char *const *name = gw_model_names(); *name; name++) {
        struct gw_model model;
        char why[WHY_MAX];
        int error = gw_model_load(&model, *name, why, sizeof(why));
        GW_ASSERT(!error);
        if (as_json)
            json_array_append_new(list, totals_json(&model));
        else
            printf("%-18s %7u %8u %12" PRIu64 " %8.1f %8.3f\n", model.name, model.layer_count,
                   model.tensor_count, model.params, mib(model.params), (double)model.macs / 1e9);
        gw_model_free(&model);
    }
    if (as_json)
        return gw_json_print(list, stdout, JSON_INDENT(2));
    json_decref(list);
    return GW_EXIT_OK;
}

/* What is printed of one model; the plan is there with a device. */
struct shown {
    const struct gw_model *model;
    const struct gw_plan *plan;
    const struct gw_plan_cfg *cfg;
    double samples_per_s;
};

static int print_model_json(const struct shown *shown)
{
    const struct gw_model *model = shown->model;
    json_t *table = json_array(), *json = totals_json(model);
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct gw_layer *layer = &model->layers[l];
        json_t *row = json_pack(
            "{s:s, s:s, s:I, s:I, s:I, s:I}", "layer", layer->name, "kind", layer->kind, "weights",
            (json_int_t)layer->weights, "biases", (json_int_t)layer->biases, "bytes",
            (json_int_t)(layer->weights + layer->biases) * 4, "macs", (json_int_t)layer->macs);
        if (shown->cfg->device) {
            json_object_set_new(row, "forward_us", json_real(us(shown->plan->layers[l].forward)));
            json_object_set_new(row, "backward_us", json_real(us(shown->plan->layers[l].backward)));
        }
        if (json_array_append_new(table, row) != 0) {
            json_decref(json); /* with a row less it would be wrong */
            json = NULL;
        }
    }
    json_object_set_new(json, "table", table);
    if (shown->cfg->device) {
        json_t *times = json_pack("{s:s, s:I, s:f, s:f, s:f}", "device", shown->cfg->device,
                                  "batch", (json_int_t)shown->cfg->batch, "samples_per_s",
                                  shown->samples_per_s, "forward_us", us(shown->plan->forward),
                                  "backward_us", us(shown->plan->backward));
        json_object_update(json, times);
        json_decref(times);
    }
    return gw_json_print(json, stdout, JSON_INDENT(2));
}

static void print_model(const struct shown *shown)
{
    const struct gw_model *model = shown->model;
    const struct gw_plan *plan = shown->plan;
    int width = 5;
    for (uint32_t l = 0; l < model->layer_count; l++)
        if ((int)strlen(model->layers[l].name) > width)
            width = (int)strlen(model->layers[l].name);
    printf("%-*s %-6s %12s %12s %14s", width, "layer", "kind", "params", "bytes", "macs");
    puts(shown->cfg->device ? "   forward_us  backward_us" : "");
    for (uint32_t l = 0; l < model->layer_count; l++) {
        const struct gw_layer *layer = &model->layers[l];
        uint64_t params = layer->weights + layer->biases;
        printf("%-*s %-6s %12" PRIu64 " %12" PRIu64 " %14" PRIu64, width, layer->name, layer->kind,
               params, 4 * params, layer->macs);
        if (shown->cfg->device)
            printf(" %12.1f %12.1f", us(plan->layers[l].forward), us(plan->layers[l].backward));
        putchar('\n');
    }
    printf("\n%s: %u layers, %u tensors, %" PRIu64 " parameters, %.1f MiB, %.3f GMAC per sample\n",
           model->name, model->layer_count, model->tensor_count, model->params, mib(model->params),
           (double)model->macs / 1e9);
    if (shown->cfg->device)
        printf("%s, batch %u: %.1f samples/s, an iteration computes %.1f us forward and %.1f us "
               "backward\n",
               shown->cfg->device, shown->cfg->batch, shown->samples_per_s, us(plan->forward),
               us(plan->backward));
}

static int show_model(const struct model_args *args)
{
    struct gw_model model;
    struct gw_plan plan = {0};
    struct gw_plan_cfg cfg = {
        .device = args->device,
        .batch = args->batch ? args->batch : BATCH_DEFAULT,
        .compression = GW_Q16_ONE,
    };
    gw_q16 rate = 0;
    char why[WHY_MAX];
    if (gw_model_load(&model, args->name, why, sizeof(why))) {
        gw_complain("model: %s", why);
        return GW_EXIT_USAGE;
    }
    int error = 0;
    if (args->device)
        error = gw_plan_make(&plan, &model, &cfg, why, sizeof(why));
    if (args->device && !error)
        error = gw_compute_rate(&rate, &model, args->device, why, sizeof(why));
    struct shown shown = {
        .model = &model, .plan = &plan, .cfg = &cfg, .samples_per_s = (double)rate / GW_Q16_ONE};
    int status = error ? GW_EXIT_USAGE : GW_EXIT_OK;
    if (error)
        gw_complain("model: %s", why);
    else if (args->json)
        status = print_model_json(&shown);
    else
        print_model(&shown);
    gw_plan_free(&plan);
    gw_model_free(&model);
    return status;
}

int gw_cmd_model(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options, .parser = parse_option, .args_doc = "[NAME|FILE.csv]", .doc = doc};
    struct model_args args = {0};
    argp_err_exit_status = GW_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &args) != 0)
        return GW_EXIT_USAGE;
    return args.name ? show_model(&args) : list_models(args.json);
}
