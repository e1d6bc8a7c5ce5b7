/* The project's tables of models, made from models/ when the program is built. */
#ifndef GW_WORKLOAD_MODEL_TABLES_H
#define GW_WORKLOAD_MODEL_TABLES_H

/* Sorted; NULL ends both. */
extern const char *const gw_model_table_names[];
extern const char *const gw_model_table_texts[];

#endif
