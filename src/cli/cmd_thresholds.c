/* `gradwire thresholds`: the S and L of queues that drop by worth, for a model and a port. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"
#include "workload/model/drop_plan.h"

enum {
    KEY_ARRIVAL = 256,
    KEY_SERVICE,
    KEY_BUFFER,
    KEY_SMALL,
    KEY_PACKET,
    KEY_QUEUES,
    KEY_COSTS,
    KEY_FORMULA,
    KEY_JSON,
    WHY_MAX = 512,
};

#define BUFFER_MAX (UINT64_C(1) << 31) /* a queue counts its bytes in 32 bits */

struct thresholds_args {
    const char *model;
    const char *costs; /* NULL: the default */
    uint64_t arrival_bps;
    uint64_t service_bps;
    struct gw_drop_port port;
    bool json;
};

static const struct argp_option options[] = {
    {"arrival", KEY_ARRIVAL, "RATE", 0, "what arrives for the port, of all layers (needed)", 0},
    {"service", KEY_SERVICE, "RATE", 0, "what the port sends (100Gbps)", 0},
    {"buffer", KEY_BUFFER, "BYTES", 0, "of the port, for all its queues (512KB)", 0},
    {"small", KEY_SMALL, "THETA", 0, "part of the packets that is unimportant (0.5)", 0},
    {"packet", KEY_PACKET, "BYTES", 0, "mean size of a packet (1500)", 0},
    {"queues", KEY_QUEUES, "N", 0, "data queues, 1 to 7; 6 leave best effort alone (7)", 0},
    {"costs", KEY_COSTS, "FILE.csv", 0, "extra rounds by loss, instead of figure 5 of DLCP", 0},
    {"formula", KEY_FORMULA, "NAME", 0, "of losses: joint, or paper, that of appendix B (joint)",
     0},
    {"json", KEY_JSON, 0, 0, "print one JSON value", 0},
    {0},
};

static const char doc[] =
    "Finds for each queue of a port with the discipline `dlcp` the thresholds above which "
    "unimportant packets (S) and all packets (L) are dropped, so that the losses cost the fewest "
    "rounds of training. Layer x of n goes to queue floor(x N / n)."
    "\vExample:\n  gradwire thresholds resnet50 --arrival 95Gbps --buffer 512KB\n";

static error_t refuse(const char *option, const char *text, const char *expected)
{
    gw_complain("--%s=%s: expected %s", option, text, expected);
    return EINVAL;
}

static error_t parse_rate(const char *option, const char *text, uint64_t *rate)
{
    return gw_parse_rate(text, rate) == 0 ? 0 : refuse(option, text, "a rate such as 100Gbps");
}

static error_t parse_size(int key, const char *text, struct gw_drop_port *port)
{
    uint64_t value;
    switch (key) {
    case KEY_BUFFER:
        if (gw_parse_bytes(text, &port->buffer) == 0 && port->buffer <= BUFFER_MAX)
            return 0;
        return refuse("buffer", text, "a size up to 2 GiB, such as 512KB");
    case KEY_PACKET:
        if (gw_parse_bytes(text, &value) != 0 || value < 64 || value > 65536)
            return refuse("packet", text, "a size from 64 B to 64 KiB");
        port->packet = (uint32_t)value;
        return 0;
    default:
        if (gw_parse_count(text, &value) != 0 || value < 1 || value > GW_DROP_QUEUES_MAX)
            return refuse("queues", text, "a whole number from 1 to 7");
        port->queues = (uint32_t)value;
        return 0;
    }
}

static error_t finish(const struct thresholds_args *args)
{
    if (!args->model)
        gw_complain("thresholds: of which model? 'gradwire model' lists them");
    else if (!args->arrival_bps)
        gw_complain("thresholds: missing: --arrival=RATE");
    else
        return 0;
    return EINVAL;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    struct thresholds_args *args = state->input;
    uint64_t chance_q32;
    switch (key) {
    case KEY_ARRIVAL:
        return parse_rate("arrival", text, &args->arrival_bps);
    case KEY_SERVICE:
        return parse_rate("service", text, &args->service_bps);
    case KEY_BUFFER:
    case KEY_PACKET:
    case KEY_QUEUES:
        return parse_size(key, text, &args->port);
    case KEY_SMALL:
        if (gw_parse_chance(text, &chance_q32) != 0)
            return refuse("small", text, "a part from 0 to 1, or a percentage");
        args->port.small = (double)chance_q32 / 4294967296.0;
        return 0;
    case KEY_COSTS:
        args->costs = text;
        return 0;
    case KEY_FORMULA:
        args->port.paper = strcmp(text, "paper") == 0;
        return args->port.paper || strcmp(text, "joint") == 0
                   ? 0
                   : refuse("formula", text, "joint or paper");
    case KEY_JSON:
        args->json = true;
        return 0;
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        return 0;
    case ARGP_KEY_ARG:
        if (args->model) {
            gw_complain("thresholds: '%s': one model is enough", text);
            return EINVAL;
        }
        args->model = text;
        return 0;
    case ARGP_KEY_END:
        return finish(args);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Below what rounding may make of a few thousand steps, no digit is worth printing. */
static double shown(double value)
{
    return value < 1e-12 ? 0 : value;
}

/* Six digits, so that the last bits of a sum do not show. */
static json_t *real(double value)
{
    char text[32];
    double rounded = 0;
    snprintf(text, sizeof(text), "%.6g", shown(value));
    sscanf(text, "%lf", &rounded);
    return json_real(rounded);
}

static json_t *list_json(const struct gw_drop_plan *plan, uint32_t queues, bool limits)
{
    json_t *list = json_array();
    for (uint32_t q = 0; q < queues; q++)
        json_array_append_new(list, json_integer((json_int_t)(limits ? plan->queues[q].limit
                                                                     : plan->queues[q].threshold)));
    return list;
}

static void print_json(const struct gw_drop_plan *plan, const struct gw_drop_port *port)
{
    json_t *table = json_array();
    for (uint32_t q = 0; q < port->queues; q++) {
        const struct gw_drop_choice *choice = &plan->queues[q];
        json_array_append_new(
            table,
            json_pack("{s:i, s:o, s:I, s:I, s:o, s:o, s:o}", "queue", (int)q + 1, "load",
                      real(port->loads[q]), "threshold", (json_int_t)choice->threshold, "limit",
                      (json_int_t)choice->limit, "small_loss", real(choice->loss.small),
                      "large_loss", real(choice->loss.large), "cost", real(choice->cost)));
    }
    json_t *json = json_pack(
        "{s:o, s:o, s:o, s:o, s:I, s:o}", "queues", table, "cost", real(plan->cost), "thresholds",
        list_json(plan, port->queues, false), "limits", list_json(plan, port->queues, true),
        "threshold", (json_int_t)plan->threshold, "step", real((double)plan->step / GW_Q16_ONE));
    json_dumpf(json, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(json);
}

static void print_list(const char *key, const struct gw_drop_plan *plan, uint32_t queues,
                       bool limits)
{
    printf("  %s: [", key);
    for (uint32_t q = 0; q < queues; q++)
        printf("%s%" PRIu64, q ? ", " : "",
               limits ? plan->queues[q].limit : plan->queues[q].threshold);
    puts("]");
}

static void print_text(const struct gw_drop_plan *plan, const struct gw_drop_port *port)
{
    printf("%-5s %7s %10s %10s %12s %12s %10s\n", "queue", "load", "S", "L", "small_loss",
           "large_loss", "cost");
    for (uint32_t q = 0; q < port->queues; q++) {
        const struct gw_drop_choice *choice = &plan->queues[q];
        printf("%-5u %7.4f %10" PRIu64 " %10" PRIu64 " %12.3g %12.3g %10.3g\n", q + 1,
               port->loads[q], choice->threshold, choice->limit, shown(choice->loss.small),
               shown(choice->loss.large), shown(choice->cost));
    }
    printf("\nThe losses cost %.3g rounds. For a scenario or a switch:\n\nqueue:\n  kind: dlcp\n",
           shown(plan->cost));
    print_list("thresholds", plan, port->queues, false);
    print_list("limits", plan, port->queues, true);
    printf("\nThe nearest sequence T (1, 1 + d, ...):\n\n  threshold: %" PRIu64 "\n  step: %.4f\n",
           plan->threshold, (double)plan->step / GW_Q16_ONE);
}

static int find(struct thresholds_args *args)
{
    struct gw_drop_port *port = &args->port;
    struct gw_drop_plan plan;
    struct gw_model model;
    char why[WHY_MAX];
    int error = gw_model_load(&model, args->model, why, sizeof(why));
    if (!error && args->costs)
        error = gw_drop_costs_load(&port->costs, args->costs, port->queues, why, sizeof(why));
    else if (!error)
        gw_drop_costs_default(&port->costs, port->queues);
    if (!error) {
        gw_drop_port_load(port, &model, (double)args->arrival_bps / (double)args->service_bps);
        error = gw_drop_plan_make(&plan, port, why, sizeof(why));
    }
    if (error)
        gw_complain("thresholds: %s", why);
    else if (args->json)
        print_json(&plan, port);
    else
        print_text(&plan, port);
    gw_model_free(&model);
    return error ? GW_EXIT_USAGE : GW_EXIT_OK;
}

int gw_cmd_thresholds(int argc, char **argv)
{
    static const struct argp argp = {
        .options = options, .parser = parse_option, .args_doc = "NAME|FILE.csv", .doc = doc};
    struct thresholds_args args = {
        .service_bps = UINT64_C(100000000000),
        .port = {.queues = GW_DROP_QUEUES_MAX, .small = 0.5, .buffer = 512000, .packet = 1500},
    };
    argp_err_exit_status = GW_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &args) != 0)
        return GW_EXIT_USAGE;
    return find(&args);
}
