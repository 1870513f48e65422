package carry

// What carrying asks of the hub. Who carries only some kinds grants only those.
//
// +kubebuilder:rbac:groups="",resources=configmaps;secrets;serviceaccounts,verbs=get;list;watch
