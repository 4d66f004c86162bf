"""The manifests of a cluster, by kustomize; docs/kubernetes.md is the guide."""
