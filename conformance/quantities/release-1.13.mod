module berth/conformance/quantities

go 1.26.0

require k8s.io/apimachinery v0.0.0-20181127025237-2b1284ed4c93

require (
	github.com/gogo/protobuf v1.3.2 // indirect
	github.com/google/gofuzz v1.2.0 // indirect
	gopkg.in/inf.v0 v0.9.1 // indirect
)
