// chip: gfx1030

// kernel: stores_apart
  global_load_dword v1, v[2:3], off              // @load
  global_store_dword v[2:3], v9, off             // @store
  global_atomic_add v[2:3], v9, off              // @atomic
  global_atomic_add v5, v[2:3], v9, off glc      // @returning
  buffer_store_dword v9, off, s[0:3], 0          // @buffer
  s_waitcnt vmcnt(1)                             // drains load
  s_waitcnt vmcnt(0)                             // drains returning
  s_waitcnt_vscnt null, 0x2                      // drains store
  s_waitcnt_vscnt null, 0x0                      // drains atomic buffer, awaits buffer
  s_endpgm

// kernel: flat_in_order
  global_load_dword v1, v[2:3], off              // @global
  flat_load_dword v4, v[2:3]                     // @flat
  ds_read_b32 v5, v0                             // @read
  flat_store_dword v[2:3], v9                    // @store
  s_waitcnt vmcnt(1)                             // drains global
  s_waitcnt vmcnt(0)                             // drains flat
  s_waitcnt lgkmcnt(1)                           // drains flat read, awaits read
  s_waitcnt_vscnt null, 0x0                      // drains store
  s_waitcnt lgkmcnt(0)                           // drains store
  s_endpgm

// kernel: single_counters
  s_load_dword s4, s[0:1], 0x0                   // @scalar
  global_load_dword v1, v[2:3], off              // @load
  exp mrt0 v4, v5, v6, v7 done                   // @export
  s_waitcnt_lgkmcnt null, 0x0                    // drains scalar
  s_waitcnt_vmcnt null, 0x0                      // drains load
  s_waitcnt_expcnt null, 0x0                     // drains export
  s_endpgm

// kernel: many_lds_reads
  ds_read_b32 v1, v0                             // @a
  ds_read_b32 v2, v0 offset:4                    // @b
  s_waitcnt lgkmcnt(1)                           // drains a
  s_waitcnt lgkmcnt(0)                           // drains b
  s_endpgm

// kernel: invalidations_do_not_count
  global_load_dword v1, v[2:3], off glc dlc      // @a
  s_waitcnt vmcnt(0)                             // drains a
  buffer_gl0_inv
  buffer_gl1_inv
  s_waitcnt vmcnt(0)                             // drains nothing
  s_endpgm

// kernel: scratch_and_global_stores
  global_store_dword v[2:3], v9, off             // @global
  scratch_store_dword off, v9, s0                // @scratch
  s_waitcnt_vscnt null, 0x1                      // drains nothing
  s_waitcnt_vscnt null, 0x0                      // drains global scratch
  s_endpgm

// function: stores_pass_calls
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)        // drains nothing, callers
  global_store_dword v[2:3], v9, off             // @store
  s_swappc_b64 s[30:31], s[4:5]
  s_waitcnt_vscnt null, 0x0                      // drains store, callers
  s_setpc_b64 s[30:31]
