package access

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/pkg/util/version"
)

// maxDiscovery bounds what is read of the API's discovery, so that its connection can be used
// again.
const maxDiscovery = 1 << 20

// ManagerVersion returns the version that the hub's manager says with the discovery of its API,
// which every user may read; empty: it says none.
func ManagerVersion(ctx context.Context, config *rest.Config) (string, error) {
	api, err := newAPI(config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, api.Get().URL().String(), nil)
	if err != nil {
		return "", err
	}
	response, err := api.Client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(response.Body, maxDiscovery)); err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the hub answers %s to a request for %s", response.Status, groupVersion)
	}
	return response.Header.Get(version.Header), nil
}
