// chip: gfx1100

// kernel: every_counter
  s_load_b64 s[0:1], s[2:3], 0x0                 // @scalar
  global_load_b32 v1, v[2:3], off                // @load
  global_store_b32 v[2:3], v9, off               // @store
  ds_load_b32 v4, v0                             // @read
  s_waitcnt vmcnt(0)                             // drains load
  s_waitcnt lgkmcnt(0)                           // drains scalar read
  s_waitcnt_vscnt null, 0x0                      // drains store
  s_endpgm

// kernel: samples_in_order_with_loads
  image_sample v[0:3], v[4:5], s[0:7], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D // @sample
  buffer_load_b32 v9, off, s[0:3], 0             // @load
  image_bvh_intersect_ray v[10:13], [v20, v21, v[22:24], v[26:28], v[30:32]], s[4:7] // @bvh
  s_waitcnt vmcnt(2)                             // drains sample
  s_waitcnt vmcnt(1)                             // drains load
  s_waitcnt vmcnt(0)                             // drains bvh
  s_endpgm

// kernel: parameters
  lds_param_load v1, attr0.x wait_vdst:15        // @p
  lds_param_load v2, attr0.y wait_vdst:15        // @q
  s_waitcnt expcnt(1)                            // drains p
  v_interp_p10_f32 v0, v2, v3, v2 wait_exp:0
  s_waitcnt expcnt(0)                            // drains nothing
  s_endpgm

// kernel: idle
  s_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_DOORBELL) // @message
  global_load_b32 v1, v[2:3], off                // @load
  scratch_store_b32 off, v9, s0                  // @store
  exp mrt0 v4, v5, v6, v7 done                   // @export
  s_wait_idle                                    // drains message load store export
  s_endpgm

// kernel: flat
  flat_load_b32 v1, v[2:3]                       // @load
  flat_atomic_add_u32 v[2:3], v9                 // @atomic
  s_waitcnt vmcnt(0) lgkmcnt(1)                  // drains load
  s_waitcnt lgkmcnt(0)                           // drains atomic
  s_waitcnt_vscnt null, 0x0                      // drains atomic
  s_endpgm
