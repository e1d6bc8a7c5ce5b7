/*
 * JSON as commands print it.
 */
#ifndef GW_CLI_JSON_PRINT_H
#define GW_CLI_JSON_PRINT_H

#include <jansson.h>
#include <stdio.h>

/*
 * Writes a value, which is then freed, and the end of the line; `flags` are those of json_dumpf().
 * NULL is what jansson made of something that JSON has no words for. Returns an exit status, after
 * a complaint; that a write failed is left to who ends the file.
 */
int gw_json_print(json_t *json, FILE *file, size_t flags);

#endif
