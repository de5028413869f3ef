//go:build android || phone

package privilege

// networkGroups are Android's groups inet, net_raw and net_admin. Its older kernels allow only their members to create
// sockets (CONFIG_ANDROID_PARANOID_NETWORK).
var networkGroups = []int{3003, 3004, 3005}
