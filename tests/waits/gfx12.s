// chip: gfx1201

// kernel: every_counter
  s_load_b64 s[0:1], s[2:3], 0x0                 // @scalar
  global_load_b32 v1, v[2:3], off                // @load
  global_store_b32 v[2:3], v9, off               // @store
  image_sample v[10:13], [v4, v5], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D // @sample
  image_bvh_intersect_ray v[14:17], [v20, v21, v[22:24], v[26:28], v[30:32]], s[4:7] // @bvh
  ds_load_b32 v6, v0                             // @read
  export mrt0 v40, v41, v42, v43 done            // @export
  s_wait_samplecnt 0x0                           // drains sample
  s_wait_bvhcnt 0x0                              // drains bvh
  s_wait_kmcnt 0x0                               // drains scalar
  s_wait_dscnt 0x0                               // drains read
  s_wait_expcnt 0x0                              // drains export
  s_wait_loadcnt 0x0                             // drains load
  s_wait_storecnt 0x0                            // drains store
  s_endpgm

// kernel: combined
  global_load_b32 v1, v[2:3], off                // @l0
  global_load_b32 v4, v[2:3], off offset:4       // @l1
  ds_load_b32 v5, v0                             // @d0
  ds_load_b32 v6, v0 offset:4                    // @d1
  s_wait_loadcnt_dscnt 0x101                     // drains l0 d0
  s_wait_loadcnt_dscnt 0x0                       // drains l1 d1
  global_store_b32 v[2:3], v9, off               // @s0
  ds_store_b32 v0, v9                            // @d2
  s_wait_storecnt_dscnt 0x3f00                   // drains d2
  s_wait_storecnt_dscnt 0x3f                     // drains s0
  s_endpgm

// kernel: flat
  flat_load_b32 v1, v[2:3]                       // @load
  flat_store_b32 v[2:3], v9                      // @store
  s_wait_loadcnt_dscnt 0x1                       // drains load
  s_wait_storecnt_dscnt 0x0                      // drains store
  s_endpgm

// kernel: atomics_and_caches
  global_atomic_add_u32 v1, v[2:3], v4, off th:TH_ATOMIC_RETURN // @returning
  global_atomic_add_u32 v[2:3], v4, off          // @atomic
  global_wb scope:SCOPE_SYS                      // @back
  s_wait_storecnt 0x1                            // drains atomic
  s_wait_storecnt 0x0                            // drains back
  s_wait_loadcnt 0x0                             // drains returning
  global_inv scope:SCOPE_SYS                     // @inv
  s_wait_loadcnt 0x0                             // drains inv
  s_endpgm

// kernel: barriers_and_messages
  s_get_barrier_state s0, -1                     // @state
  s_barrier_signal_isfirst -1                    // @first
  s_barrier_wait 0xffff
  s_wait_kmcnt 0x0                               // drains state first
  ds_param_load v1, attr0.x wait_va_vdst:15 wait_vm_vsrc:1 // @p
  s_wait_expcnt 0x0                              // drains p
  s_endpgm

// kernel: loop
  global_load_b32 v1, v[2:3], off                // @first
.Laround:
  global_load_b32 v4, v[2:3], off offset:4       // @next
  s_wait_loadcnt 0x1                             // drains first next
  s_cbranch_scc1 .Laround
  s_wait_idle                                    // drains next
  s_endpgm

// kernel: scalar_loads
  s_load_b32 s4, s[0:1], 0x0                     // @a
  s_load_b32 s5, s[0:1], 0x4                     // @b
  s_wait_kmcnt 0x1                               // drains nothing, perhaps a b
  s_wait_kmcnt 0x0                               // drains a b
  s_endpgm

// function: entry
  s_wait_loadcnt_dscnt 0x0                       // drains nothing, callers
  s_wait_kmcnt 0x0                               // drains nothing, callers
  s_setpc_b64 s[30:31]
