/*
 * PIAS: a message begins in the highest class and falls by one at each threshold of what it has
 * sent, so that short messages pass long ones without anybody knowing their length (Bai et al.,
 * Information-Agnostic Flow Scheduling for Commodity Data Centers, NSDI 2015, section 3). With
 * DCTCP, and a queue of strict priority that marks by the total of its port (prio).
 *
 * The paper has 8 priorities and 7 thresholds. There are 7 classes of data, so its last threshold
 * is not used, and what would be beyond it stays in the last class, best effort. What class the
 * message was given makes no difference.
 *
 * Invariant: the class of a message never rises, and one of at most th0 bytes keeps the first.
 */
#include "core/urgency/urgency.h"

#include "core/pkt.h"

enum {
    THRESHOLDS = GW_CLASS_DATA_MAX,
};

struct pias_cfg {
    uint64_t threshold[THRESHOLDS]; /* bytes; 0: this and those behind it are not used */
};

/* A packet is beyond a threshold when its first byte is. */
static struct gw_urgency pias_pick(const void *config, const struct gw_urgency_sample *sample)
{
    const struct pias_cfg *cfg = config;
    uint32_t fallen = 0;
    while (fallen < THRESHOLDS && cfg->threshold[fallen] && sample->sent >= cfg->threshold[fallen])
        fallen++;
    return (struct gw_urgency){.class = (uint8_t)(GW_CLASS_DATA_MAX - fallen)};
}

static const char *pias_check(const void *config)
{
    static const char *const names[THRESHOLDS] = {
        NULL,
        "th1: must not be below th0",
        "th2: must not be below th1",
        "th3: must not be below th2",
        "th4: must not be below th3",
        "th5: must not be below th4",
    };
    const struct pias_cfg *cfg = config;
    for (uint32_t i = 1; i < THRESHOLDS && cfg->threshold[i - 1] && cfg->threshold[i]; i++)
        if (cfg->threshold[i] < cfg->threshold[i - 1])
            return names[i];
    return NULL;
}

#define THRESHOLD_PARAM(i, initial_text)                                                           \
    {                                                                                              \
        .name = "th" #i, .type = GW_PARAM_BYTES,                                                   \
        .offset = offsetof(struct pias_cfg, threshold[i]), .initial = initial_text,                \
        .help = "bytes sent at which threshold " #i " is passed, 0: never; not below the one "     \
                "before it (PIAS' simulations, web-search at a load of 0.8)"                       \
    }

static const struct gw_param params[] = {
    THRESHOLD_PARAM(0, "1327140"), THRESHOLD_PARAM(1, "1940340"), THRESHOLD_PARAM(2, "2406080"),
    THRESHOLD_PARAM(3, "2861600"), THRESHOLD_PARAM(4, "3128780"), THRESHOLD_PARAM(5, "3412020"),
};

/* Web-search: the authors' simulation scripts, in packets of 1460 bytes. Models: all classes get
 * the same number of bytes when each tensor is a message of its own; DLCP says nothing of its. */
static const struct gw_preset presets[] = {
    {.name = "web-search-0.5",
     .settings = "th0=1546140 th1=2061520 th2=2398780 th3=2728740 th4=2931680 th5=3087900",
     .help = "the paper's optimum for web-search at a load of 0.5"},
    {.name = "web-search-0.6",
     .settings = "th0=1395760 th1=2016260 th2=2508280 th3=2960880 th4=3353620 th5=3724460",
     .help = "at 0.6"},
    {.name = "web-search-0.7",
     .settings = "th0=1458540 th1=1905300 th2=2283440 th3=2573980 th4=2855760 th5=3137540",
     .help = "at 0.7"},
    {.name = "web-search-0.8", .settings = "", .help = "at 0.8: the defaults"},
    {.name = "web-search-0.9",
     .settings = "th0=1108140 th1=1652720 th2=2125760 th3=2536020 th4=2934600 th5=3210540",
     .help = "at 0.9"},
    {.name = "resnet50",
     .settings = "th0=329KB th1=784KB th2=1433KB th3=2263KB th4=3666KB th5=6058KB",
     .help = "bytes of ResNet-50's tensors divided evenly"},
    {.name = "inception-v3",
     .settings = "th0=161KB th1=344KB th2=563KB th3=918KB th4=1530KB th5=2959KB",
     .help = "bytes of Inception-v3's tensors divided evenly"},
    {.name = "kernel",
     .settings = "th0=100KiB th1=0",
     .help = "two classes, as the authors' kernel module begins"},
};

const struct gw_urgency_ops gw_urgency_pias = {
    .algo =
        {
            .name = "pias",
            .summary = "from class 6 down to best effort as the message ages",
            .source = "PIAS, NSDI 2015, section 3",
            .params = params,
            .presets = presets,
            .param_count = sizeof(params) / sizeof(params[0]),
            .preset_count = sizeof(presets) / sizeof(presets[0]),
            .check = pias_check,
            .cfg_size = sizeof(struct pias_cfg),
        },
    .pick = pias_pick,
};
