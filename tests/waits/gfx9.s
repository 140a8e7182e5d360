// chip: gfx942

// kernel: straight
  global_load_dword v1, v[2:3], off              // @a
  global_load_dword v4, v[2:3], off offset:4     // @b
  global_load_dword v5, v[2:3], off offset:8     // @c
  s_waitcnt vmcnt(2)                             // drains a
  v_add_f32_e32 v1, v1, v1
  s_waitcnt vmcnt(0)                             // drains b c, awaits c
  v_add_f32_e32 v4, v4, v5
  s_waitcnt vmcnt(0)                             // drains nothing
  s_endpgm

// kernel: stores_count_as_loads
  global_load_dword v1, v[2:3], off              // @load
  global_store_dword v[2:3], v9, off             // @store
  global_atomic_add v[2:3], v9, off              // @atomic
  buffer_load_dword v5, off, s[0:3], 0           // @buffer
  s_waitcnt vmcnt(3)                             // drains load
  s_waitcnt vmcnt(1)                             // drains store atomic, awaits atomic
  s_waitcnt vmcnt(0)                             // drains buffer
  s_endpgm

// kernel: scalar_loads_return_in_any_order
  s_load_dword s4, s[0:1], 0x0                   // @a
  s_load_dwordx2 s[6:7], s[0:1], 0x10            // @b
  ds_read_b32 v1, v0                             // @c
  ds_read_b32 v2, v0 offset:4                    // @d
  s_waitcnt lgkmcnt(1)                           // drains c, perhaps a b
  s_waitcnt lgkmcnt(0)                           // drains a b d
  s_endpgm

// kernel: scalar_loads_alone
  s_load_dword s4, s[0:1], 0x0                   // @a
  s_load_dword s5, s[0:1], 0x4                   // @b
  s_waitcnt lgkmcnt(1)                           // drains nothing, perhaps a b
  s_waitcnt lgkmcnt(0)                           // drains a b
  s_endpgm

// kernel: counters_apart
  global_load_dword v1, v[2:3], off              // @load
  ds_read_b32 v4, v0                             // @read
  ds_write_b32 v0, v9                            // @write
  s_waitcnt vmcnt(0) lgkmcnt(1)                  // drains load read
  s_waitcnt lgkmcnt(0)                           // drains write
  s_endpgm

// kernel: flat_counts_twice_and_returns_in_any_order
  global_load_dword v1, v[2:3], off              // @global
  flat_load_dword v4, v[2:3]                     // @flat
  ds_read_b32 v5, v0                             // @read
  s_waitcnt vmcnt(1)                             // drains nothing, perhaps flat
  s_waitcnt vmcnt(0)                             // drains global flat
  s_waitcnt lgkmcnt(0)                           // drains flat read
  s_endpgm

// kernel: dma_to_lds
  s_mov_b32 m0, s7
  s_nop 0
  buffer_load_dword v2, s[8:11], 0 offen lds     // @a
  global_load_lds_dword v[2:3], off              // @b
  ds_read_b32 v5, v0                             // @read
  s_waitcnt lgkmcnt(0)                           // drains read
  s_waitcnt vmcnt(1)                             // drains a
  s_waitcnt vmcnt(0)                             // drains b
  s_barrier
  s_endpgm

// kernel: loop_with_a_load_over_the_back_edge
  global_load_dword v1, v[2:3], off              // @first
.Lcarried:
  global_load_dword v4, v[2:3], off offset:4     // @next
  s_waitcnt vmcnt(1)                             // drains first next
  v_mov_b32_e32 v5, v1
  s_sub_u32 s4, s4, 1
  s_cmp_lg_u32 s4, 0
  s_cbranch_scc1 .Lcarried
  s_waitcnt vmcnt(0)                             // drains next
  s_endpgm

// kernel: double_buffer
  global_load_dword v1, v[2:3], off              // @p0
  global_load_dword v4, v[2:3], off offset:4     // @p1
.Lagain:
  global_load_dword v5, v[2:3], off offset:8     // @n0
  global_load_dword v6, v[2:3], off offset:12    // @n1
  s_waitcnt vmcnt(2)                             // drains p0 p1 m0 m1, awaits p1 m1
  v_add_f32_e32 v7, v1, v4
  global_load_dword v1, v[2:3], off offset:16    // @m0
  global_load_dword v4, v[2:3], off offset:20    // @m1
  s_waitcnt vmcnt(2)                             // drains n0 n1, awaits n1
  v_add_f32_e32 v7, v5, v6
  s_sub_u32 s4, s4, 1
  s_cmp_lg_u32 s4, 0
  s_cbranch_scc1 .Lagain
  s_waitcnt vmcnt(0)                             // drains m0 m1, awaits m1
  s_endpgm

// kernel: diverging_paths
  s_cmp_eq_u32 s4, 0
  s_cbranch_scc1 .Lother
  global_load_dword v1, v[2:3], off              // @a
  global_load_dword v4, v[2:3], off offset:4     // @b
  s_branch .Lmeet
.Lother:
  global_load_dword v1, v[2:3], off offset:8     // @c
.Lmeet:
  s_waitcnt vmcnt(1)                             // drains a
  s_waitcnt vmcnt(0)                             // drains b c
  s_endpgm

// kernel: one_path_waits
  global_load_dword v1, v[2:3], off              // @a
  s_cbranch_vccz .Ljoin
  s_waitcnt vmcnt(0)                             // drains a
.Ljoin:
  s_waitcnt vmcnt(0)                             // drains a
  s_endpgm

// kernel: nested_loops
  global_load_dword v1, v[2:3], off              // @outside
.Louter:
  global_load_dword v4, v[2:3], off offset:4     // @outer
.Linner:
  ds_read_b32 v5, v0                             // @inner
  s_waitcnt lgkmcnt(0)                           // drains inner
  s_cbranch_scc1 .Linner
  s_waitcnt vmcnt(1)                             // drains outside outer
  s_cbranch_vccnz .Louter
  s_waitcnt vmcnt(0)                             // drains outer
  s_endpgm

// kernel: unwaited_loop
.Lmore:
  global_load_dword v1, v[2:3], off              // @a
  global_store_dword v[2:3], v9, off             // @b
  s_cbranch_scc1 .Lmore
  s_waitcnt vmcnt(4)                             // drains a b, awaits b
  s_waitcnt vmcnt(3)                             // drains a
  s_waitcnt vmcnt(0)                             // drains a b, awaits b
  s_endpgm

// kernel: writing_back
  global_store_dword v[2:3], v9, off             // @store
  buffer_wbl2 sc1                                // @back
  s_waitcnt vmcnt(1)                             // drains store
  s_waitcnt vmcnt(0)                             // drains back
  buffer_inv sc1
  s_waitcnt vmcnt(0)                             // drains nothing
  s_endpgm

// kernel: messages_and_time
  s_memtime s[4:5]                               // @time
  s_sendmsg sendmsg(MSG_INTERRUPT)               // @message
  s_waitcnt lgkmcnt(0)                           // drains time message
  s_endpgm

// kernel: unreachable
  s_endpgm
  s_waitcnt vmcnt(0)                             // unreachable

// function: callee
  s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)        // drains nothing, callers
  global_load_dword v1, v[2:3], off              // @a
  s_waitcnt vmcnt(0)                             // drains a
  s_setpc_b64 s[30:31]

// kernel: call
  global_load_dword v1, v[2:3], off              // @a
  s_swappc_b64 s[30:31], s[4:5]
  s_waitcnt vmcnt(0)                             // drains nothing
  s_endpgm
