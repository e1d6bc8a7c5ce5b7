/* JSON as commands print it; see json_print.h. */
#include "cli/json_print.h"

#include <stdbool.h>

#include "cli/cli.h"

int gw_json_print(json_t *json, FILE *file, size_t flags)
{
    bool is_whole = json && (json_dumpf(json, file, flags) == 0 || ferror(file));
    json_decref(json);
    if (!is_whole) {
        gw_complain(
            "the result has no JSON: a number is not finite, a name is not UTF-8, or memory "
            "is short");
        return GW_EXIT_FAILURE;
    }
    fputc('\n', file);
    return GW_EXIT_OK;
}
