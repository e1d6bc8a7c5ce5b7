/* The messages of training jobs in reports; see report_messages.h. */
#include "cli/report_messages.h"

#include <stdio.h>

static double in_us(gw_time time)
{
    return (double)time / (double)GW_US;
}

/* The part of packets that arrived; 1 of none. */
static double arrived(uint64_t packets, uint64_t missing)
{
    return packets ? 1 - (double)missing / (double)packets : 1;
}

static uint64_t sum(const uint64_t counts[GW_CLASSES])
{
    uint64_t total = 0;
    for (uint32_t class = 0; class < GW_CLASSES; class ++)
        total += counts[class];
    return total;
}

static double important(const struct gw_message_result *result)
{
    return result->begun ? (double)result->important / (double)result->begun : 1;
}

/* The classes that messages had, the most urgent first. */
static json_t *classes_json(const struct gw_message_result *result)
{
    json_t *list = json_array();
    for (uint32_t class = GW_CLASSES; class -- > 0;)
        if (result->packets[class])
            json_array_append_new(
                list, json_pack("{s:i, s:I, s:I, s:f}", "class", (int)class, "packets",
                                (json_int_t)result->packets[class], "missing",
                                (json_int_t)result->missing[class], "arrived",
                                arrived(result->packets[class], result->missing[class])));
    return list;
}

static json_t *way_json(const struct gw_message_result *result)
{
    uint64_t packets = sum(result->packets), missing = sum(result->missing);
    json_t *fct = json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean", result->mean_ps / (double)GW_US,
                            "p50", in_us(result->median), "p99", in_us(result->p99), "p999",
                            in_us(result->p999), "max", in_us(result->longest));
    return json_pack("{s:I, s:o, s:I, s:I, s:f, s:f, s:o}", "count", (json_int_t)result->sent,
                     "fct_us", fct, "packets", (json_int_t)packets, "missing", (json_int_t)missing,
                     "arrived", arrived(packets, missing), "important", important(result),
                     "classes", classes_json(result));
}

json_t *gw_report_messages_json(const struct gw_run_report *run, uint32_t job)
{
    struct gw_message_result results[GW_MESSAGE_WAYS + 1];
    if (!gw_sim_messages(run->sim, job, results))
        return NULL;
    return json_pack("{s:o, s:o, s:o}", "push", way_json(&results[GW_MESSAGE_PUSH]), "pull",
                     way_json(&results[GW_MESSAGE_PULL]), "all",
                     way_json(&results[GW_MESSAGE_WAYS]));
}

/* Nothing of messages whose time is not known, that are whole and all worth the same. */
static void print_way(const char *name, const struct gw_message_result *result)
{
    uint64_t missing = sum(result->missing);
    bool differ = result->important < result->begun;
    const char *comma = "";
    if (!result->sent && !missing && !differ)
        return;
    printf("               %s: ", name);
    if (result->sent) {
        printf("%llu messages, mean %.2f us, p99 %.2f us, at most %.2f us",
               (unsigned long long)result->sent, result->mean_ps / (double)GW_US,
               in_us(result->p99), in_us(result->longest));
        comma = "; ";
    }
    if (missing) {
        printf("%s%.2f %% of packets arrived", comma, 100 * arrived(sum(result->packets), missing));
        comma = ", ";
    }
    if (differ)
        printf("%s%.0f %% were important", comma, 100 * important(result));
    putchar('\n');
}

/* Where classes differ, what was lost of each. */
static void print_classes(const struct gw_message_result *result)
{
    if (sum(result->missing) == 0)
        return;
    for (uint32_t class = GW_CLASSES; class -- > 0;)
        if (result->packets[class] && result->packets[class] < sum(result->packets))
            printf("               class %u: %.2f %% of %llu packets arrived\n", class,
                   100 * arrived(result->packets[class], result->missing[class]),
                   (unsigned long long)result->packets[class]);
}

void gw_report_messages_text(const struct gw_run_report *run, uint32_t job)
{
    struct gw_message_result results[GW_MESSAGE_WAYS + 1];
    if (!gw_sim_messages(run->sim, job, results))
        return;
    bool is_apart = run->scenario->workload.jobs[job].via == GW_JOB_VIA_PUSH;
    print_way(is_apart ? "pushes" : "messages", &results[GW_MESSAGE_PUSH]);
    print_way("pulls", &results[GW_MESSAGE_PULL]);
    print_classes(&results[GW_MESSAGE_WAYS]);
}
