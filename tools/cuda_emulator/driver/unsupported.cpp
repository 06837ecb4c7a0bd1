// The driver calls of CUDA 13 that the emulator does not provide. They exist, so that a program which links against or
// looks up the whole driver starts; calling one says which it was.
#include "state.h"

// clang-format off
#define UNSUPPORTED_CALLS(X) \
    X(cuArray3DCreate_v2) X(cuArray3DGetDescriptor_v2) X(cuArrayCreate_v2) X(cuArrayDestroy) \
    X(cuArrayGetDescriptor_v2) X(cuArrayGetMemoryRequirements) X(cuArrayGetPlane) X(cuArrayGetSparseProperties) \
    X(cuCheckpointProcessCheckpoint) X(cuCheckpointProcessGetRestoreThreadId) X(cuCheckpointProcessGetState) \
    X(cuCheckpointProcessLock) X(cuCheckpointProcessRestore) X(cuCheckpointProcessUnlock) X(cuCoredumpGetAttribute) \
    X(cuCoredumpGetAttributeGlobal) X(cuCoredumpSetAttribute) X(cuCoredumpSetAttributeGlobal) X(cuCtxAttach) \
    X(cuCtxFromGreenCtx) X(cuCtxGetDevResource) X(cuCtxGetExecAffinity) X(cuCtxRecordEvent) X(cuCtxWaitEvent) \
    X(cuDestroyExternalMemory) X(cuDestroyExternalSemaphore) X(cuDevResourceGenerateDesc) \
    X(cuDevSmResourceSplitByCount) X(cuDeviceGetDevResource) X(cuDeviceGetExecAffinitySupport) \
    X(cuDeviceGetGraphMemAttribute) X(cuDeviceGetHostAtomicCapabilities) X(cuDeviceGetLuid) \
    X(cuDeviceGetNvSciSyncAttributes) X(cuDeviceGetP2PAtomicCapabilities) X(cuDeviceGetProperties) \
    X(cuDeviceGetTexture1DLinearMaxWidth) X(cuDeviceGraphMemTrim) X(cuDeviceRegisterAsyncNotification) \
    X(cuDeviceSetGraphMemAttribute) X(cuDeviceUnregisterAsyncNotification) X(cuExternalMemoryGetMappedBuffer) \
    X(cuExternalMemoryGetMappedMipmappedArray) X(cuFlushGPUDirectRDMAWrites) X(cuFuncSetSharedSize) \
    X(cuGetExportTable) X(cuGraphAddBatchMemOpNode) X(cuGraphAddChildGraphNode) X(cuGraphAddDependencies_v2) \
    X(cuGraphAddEventRecordNode) X(cuGraphAddEventWaitNode) X(cuGraphAddExternalSemaphoresSignalNode) \
    X(cuGraphAddExternalSemaphoresWaitNode) X(cuGraphAddHostNode) X(cuGraphAddKernelNode_v2) \
    X(cuGraphAddMemAllocNode) X(cuGraphAddMemFreeNode) X(cuGraphAddMemcpyNode) X(cuGraphAddMemsetNode) \
    X(cuGraphAddNode_v2) X(cuGraphBatchMemOpNodeGetParams) X(cuGraphBatchMemOpNodeSetParams) \
    X(cuGraphChildGraphNodeGetGraph) X(cuGraphConditionalHandleCreate) X(cuGraphDestroyNode) \
    X(cuGraphEventRecordNodeGetEvent) X(cuGraphEventRecordNodeSetEvent) X(cuGraphEventWaitNodeGetEvent) \
    X(cuGraphEventWaitNodeSetEvent) X(cuGraphExecBatchMemOpNodeSetParams) X(cuGraphExecChildGraphNodeSetParams) \
    X(cuGraphExecEventRecordNodeSetEvent) X(cuGraphExecEventWaitNodeSetEvent) \
    X(cuGraphExecExternalSemaphoresSignalNodeSetParams) X(cuGraphExecExternalSemaphoresWaitNodeSetParams) \
    X(cuGraphExecHostNodeSetParams) X(cuGraphExecKernelNodeSetParams_v2) X(cuGraphExecMemcpyNodeSetParams) \
    X(cuGraphExecMemsetNodeSetParams) X(cuGraphExecNodeSetParams) X(cuGraphExternalSemaphoresSignalNodeGetParams) \
    X(cuGraphExternalSemaphoresSignalNodeSetParams) X(cuGraphExternalSemaphoresWaitNodeGetParams) \
    X(cuGraphExternalSemaphoresWaitNodeSetParams) X(cuGraphHostNodeGetParams) X(cuGraphHostNodeSetParams) \
    X(cuGraphKernelNodeCopyAttributes) X(cuGraphKernelNodeGetAttribute) X(cuGraphKernelNodeGetParams_v2) \
    X(cuGraphKernelNodeSetAttribute) X(cuGraphKernelNodeSetParams_v2) X(cuGraphMemAllocNodeGetParams) \
    X(cuGraphMemFreeNodeGetParams) X(cuGraphMemcpyNodeGetParams) X(cuGraphMemcpyNodeSetParams) \
    X(cuGraphMemsetNodeGetParams) X(cuGraphMemsetNodeSetParams) X(cuGraphNodeFindInClone) \
    X(cuGraphNodeGetDependentNodes_v2) X(cuGraphNodeGetEnabled) X(cuGraphNodeSetEnabled) X(cuGraphNodeSetParams) \
    X(cuGraphReleaseUserObject) X(cuGraphRemoveDependencies_v2) X(cuGraphRetainUserObject) X(cuGraphicsMapResources) \
    X(cuGraphicsResourceGetMappedMipmappedArray) X(cuGraphicsResourceGetMappedPointer_v2) \
    X(cuGraphicsResourceSetMapFlags_v2) X(cuGraphicsSubResourceGetMappedArray) X(cuGraphicsUnmapResources) \
    X(cuGraphicsUnregisterResource) X(cuGreenCtxCreate) X(cuGreenCtxDestroy) X(cuGreenCtxGetDevResource) \
    X(cuGreenCtxGetId) X(cuGreenCtxRecordEvent) X(cuGreenCtxStreamCreate) X(cuGreenCtxWaitEvent) \
    X(cuImportExternalMemory) X(cuImportExternalSemaphore) X(cuKernelGetAttribute) X(cuKernelGetFunction) \
    X(cuKernelGetLibrary) X(cuKernelGetName) X(cuKernelGetParamInfo) X(cuKernelSetAttribute) \
    X(cuKernelSetCacheConfig) X(cuLaunch) X(cuLaunchCooperativeKernel) X(cuLaunchCooperativeKernelMultiDevice) \
    X(cuLaunchGrid) X(cuLaunchGridAsync) X(cuLibraryEnumerateKernels) X(cuLibraryGetGlobal) X(cuLibraryGetKernel) \
    X(cuLibraryGetKernelCount) X(cuLibraryGetManaged) X(cuLibraryGetModule) X(cuLibraryGetUnifiedFunction) \
    X(cuLibraryLoadData) X(cuLibraryLoadFromFile) X(cuLibraryUnload) X(cuLinkAddData_v2) X(cuLinkAddFile_v2) \
    X(cuLinkComplete) X(cuLinkCreate_v2) X(cuLinkDestroy) X(cuLogsCurrent) X(cuLogsDumpToFile) X(cuLogsDumpToMemory) \
    X(cuLogsRegisterCallback) X(cuLogsUnregisterCallback) X(cuMemBatchDecompressAsync) \
    X(cuMemDiscardAndPrefetchBatchAsync) X(cuMemDiscardBatchAsync) X(cuMemGetDefaultMemPool) \
    X(cuMemGetHandleForAddressRange) X(cuMemGetMemPool) X(cuMemMapArrayAsync) X(cuMemPoolExportPointer) \
    X(cuMemPoolExportToShareableHandle) X(cuMemPoolGetAccess) X(cuMemPoolImportFromShareableHandle) \
    X(cuMemPoolImportPointer) X(cuMemPrefetchBatchAsync) X(cuMemRangeGetAttribute) X(cuMemRangeGetAttributes) \
    X(cuMemSetMemPool) X(cuMemcpy3DAsync_v2) X(cuMemcpy3DBatchAsync_v2) X(cuMemcpy3DPeer) X(cuMemcpy3DPeerAsync) \
    X(cuMemcpy3D_v2) X(cuMemcpyAtoA_v2) X(cuMemcpyAtoD_v2) X(cuMemcpyAtoHAsync_v2) X(cuMemcpyAtoH_v2) \
    X(cuMemcpyBatchAsync_v2) X(cuMemcpyDtoA_v2) X(cuMemcpyHtoAAsync_v2) X(cuMemcpyHtoA_v2) X(cuMipmappedArrayCreate) \
    X(cuMipmappedArrayDestroy) X(cuMipmappedArrayGetLevel) X(cuMipmappedArrayGetMemoryRequirements) \
    X(cuMipmappedArrayGetSparseProperties) X(cuModuleEnumerateFunctions) X(cuModuleGetFunctionCount) \
    X(cuModuleGetSurfRef) X(cuModuleGetTexRef) X(cuMulticastAddDevice) X(cuMulticastBindAddr) X(cuMulticastBindMem) \
    X(cuMulticastCreate) X(cuMulticastGetGranularity) X(cuMulticastUnbind) X(cuOccupancyMaxActiveClusters) \
    X(cuOccupancyMaxPotentialBlockSizeWithFlags) X(cuOccupancyMaxPotentialClusterSize) X(cuParamSetSize) \
    X(cuParamSetTexRef) X(cuParamSetf) X(cuParamSeti) X(cuParamSetv) X(cuProfilerInitialize) \
    X(cuSignalExternalSemaphoresAsync) X(cuStreamAttachMemAsync) X(cuStreamBatchMemOp_v2) \
    X(cuStreamBeginCaptureToGraph) X(cuStreamGetAttribute) X(cuStreamGetCtx_v2) X(cuStreamGetGreenCtx) \
    X(cuStreamWaitValue32_v2) X(cuStreamWaitValue64_v2) X(cuStreamWriteValue32_v2) X(cuStreamWriteValue64_v2) \
    X(cuSurfObjectCreate) X(cuSurfObjectDestroy) X(cuSurfObjectGetResourceDesc) X(cuSurfRefGetArray) \
    X(cuSurfRefSetArray) X(cuTensorMapEncodeIm2col) X(cuTensorMapEncodeIm2colWide) X(cuTensorMapEncodeTiled) \
    X(cuTensorMapReplaceAddress) X(cuTexObjectCreate) X(cuTexObjectDestroy) X(cuTexObjectGetResourceDesc) \
    X(cuTexObjectGetResourceViewDesc) X(cuTexObjectGetTextureDesc) X(cuTexRefCreate) X(cuTexRefDestroy) \
    X(cuTexRefGetAddressMode) X(cuTexRefGetAddress_v2) X(cuTexRefGetArray) X(cuTexRefGetBorderColor) \
    X(cuTexRefGetFilterMode) X(cuTexRefGetFlags) X(cuTexRefGetFormat) X(cuTexRefGetMaxAnisotropy) \
    X(cuTexRefGetMipmapFilterMode) X(cuTexRefGetMipmapLevelBias) X(cuTexRefGetMipmapLevelClamp) \
    X(cuTexRefGetMipmappedArray) X(cuTexRefSetAddress2D_v3) X(cuTexRefSetAddressMode) X(cuTexRefSetAddress_v2) \
    X(cuTexRefSetArray) X(cuTexRefSetBorderColor) X(cuTexRefSetFilterMode) X(cuTexRefSetFlags) X(cuTexRefSetFormat) \
    X(cuTexRefSetMaxAnisotropy) X(cuTexRefSetMipmapFilterMode) X(cuTexRefSetMipmapLevelBias) \
    X(cuTexRefSetMipmapLevelClamp) X(cuTexRefSetMipmappedArray) X(cuUserObjectCreate) X(cuUserObjectRelease) \
    X(cuUserObjectRetain) X(cuWaitExternalSemaphoresAsync)
// clang-format on

// The arguments stay unread: in the x86-64 calling convention the caller removes them.
#define DEFINE(name) \
    CUEMU_API name() { return cuemu::error(CUDA_ERROR_NOT_SUPPORTED, #name " is not provided by the emulator"); }
UNSUPPORTED_CALLS(DEFINE)
