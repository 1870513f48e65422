package subresources

// The certificate of the server, which package servingcert keeps, is told to the hub in its
// APIService.
//
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,resourceNames=v1alpha1.subresources.jobferry.dev,verbs=list;watch;patch
// +kubebuilder:rbac:groups="",namespace=jobferry-system,resources=secrets,verbs=list;watch;patch
