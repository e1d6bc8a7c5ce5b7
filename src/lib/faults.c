/* Faults for tests; see faults.h. */
#include "lib/faults.h"

#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "gradwire.h"

enum {
    WORD_MAX = 64,
};

#define CHANCE_MAX (UINT64_C(1) << 31) /* beyond a half, sending again hardly ever helps */

/* Takes one word of the text. False: it is none. */
static bool take_word(char *word, struct gw_datapath_faults *faults)
{
    const struct {
        const char *name;
        uint64_t *chance;
    } chances[] = {{"lose", &faults->lose_q32},
                   {"duplicate", &faults->duplicate_q32},
                   {"delay", &faults->delay_q32}};
    char *value = strchr(word, '=');
    if (!value)
        return false;
    *value++ = '\0';
    if (strcmp(word, "seed") == 0)
        return gw_parse_count(value, &faults->seed) == 0;
    for (size_t i = 0; i < sizeof(chances) / sizeof(chances[0]); i++)
        if (strcmp(word, chances[i].name) == 0)
            return gw_parse_chance(value, chances[i].chance) == 0 &&
                   *chances[i].chance <= CHANCE_MAX;
    return false;
}

int gw_faults_parse(const char *text, struct gw_datapath_faults *faults, char *error)
{
    *faults = (struct gw_datapath_faults){0};
    while (*text) {
        size_t length = strcspn(text, ",");
        char word[WORD_MAX];
        snprintf(word, sizeof(word), "%.*s", (int)length, text);
        if (length >= sizeof(word) || !take_word(word, faults))
            return gw_net_fail(error, GRADWIRE_ERR_INVALID,
                               GW_FAULTS_VARIABLE " says %.*s: lose, duplicate or delay=0 to 0.5, "
                                                  "or seed=N, with commas between",
                               (int)length, text);
        text += length + (text[length] == ',');
    }
    return GRADWIRE_OK;
}
