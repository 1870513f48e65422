package jobsettest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/jobferry/jobferry/e2e/rig"
)

// Client is a client of JobSet's API group on a hub.
func Client(hub *rig.Cluster) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := jobset.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config := hub.RESTConfig()
	config.APIPath = "/apis"
	config.GroupVersion = &jobset.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType = runtime.ContentTypeJSON
	return rest.RESTClientFor(config)
}
