// Values of an entry's inputs and parameters: from files, from the training block's data, or drawn
// from a seed.
#ifndef PRESK_CLI_VALUES_H
#define PRESK_CLI_VALUES_H

#include "cli/execute.h"
#include "runtime/data.h"

// The stream that the training block's stages describe, with the dimensions that `windows` and
// `batch` name: as the command line has bound them, else as stated, which binds them. False with a
// diagnostic.
bool cli_stream_spec(CliEntry *entry, RtStreamSpec *spec);
// Binds what --in, --params and --batch give.
int cli_values_given(CliEntry *entry);
// Writes every value of the entry to a folder, as they enter the run: NAME.npy for a tensor,
// NAME.safetensors for a tree; what another program needs to repeat the run. False with a
// diagnostic.
bool cli_values_save(CliEntry *entry, const char *folder);

// Whether the entry's result can be written to a path of this ending: .npy or .psk.d (one tensor; a
// parameter tree as a .psk.d is a checkpoint), .safetensors. Asked before the run; makes the path's
// folders. Gives a command's status.
int cli_values_can_write(CliEntry *entry, const char *path);
// Writes a result to `@F` or `F`, where it can be. False with a diagnostic.
bool cli_values_write(CliEntry *entry, const char *path, uint32_t count,
                      const CliNamedTensor *tensors);
// One JSON object: entry, backend, launches, seconds, peak_bytes, and the result's tensors (values
// in full up to a thousand elements, else smallest, largest and mean). `difference`, if not null,
// is that from the result on another backend.
void cli_json_result(CliEntry *entry, const CliExecution *execution, uint32_t count,
                     const CliNamedTensor *tensors, const CliDifference *difference,
                     RtBackend other);

#endif
