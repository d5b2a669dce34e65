// Prints a program's ranges as a profiler of NVIDIA's would see them: a library that NVTX loads, NVTX_INJECTION64_PATH,
// writes them to the file that RANGES names, indented by how deep they are.
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

// NVTX calls it; no header declares it.
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);

static FILE *out;
static int depth;

static int push(const char *name) {
    fprintf(out, "%*s%s\n", 2 * depth++, "", name);
    return depth;
}

static int pop(void) {
    if (--depth < 0) abort();
    return depth;
}

static void finish(void) {
    fprintf(out, "%d open\n", depth);
    fclose(out);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
    const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable table;
    unsigned count;
    out = fopen(getenv("RANGES"), "w");
    if (!out || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &count)) return 0;
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
    atexit(finish);
    return 1;
}
