# Tests that take longer than a moment, as <program>/<Suite> or <program>/<Suite>.<Test>; everything else is fast.
set(thorough)
set(slow)
set(soak)

# Tests that take minutes under a sanitizer, for code that others of their suites go through: left out there alone.
set(unsanitized)
if(sanitizer STREQUAL "thread")
  set(unsanitized
    exec_threads_tests/CachedMemory
    exec_threads_tests/FailedRun.ALayerThatTakesTooLongIsAPeerLostAndIsWaitedFor
    exec_threads_tests/FailedRun.NamesTheBackwardAndTheLossAsWell
    exec_threads_tests/FailedRun.OutOfMemoryHasItsOwnCode
    exec_threads_tests/MeasuredMemory.EqualsTheSimulatedOfEveryLinearScheduleAndCut
    exec_threads_tests/MeasuredMemory.EqualsTheSimulatedOfInteriorFrozenLayers
    exec_threads_tests/MeasuredMemory.EqualsTheSimulatedOfReplicas
    exec_threads_tests/MeasuredMemory.EqualsTheSimulatedOfWeightVersions
    exec_threads_tests/MeasuredMemory.EqualsTheSimulatedOnEveryPlacement
    exec_threads_tests/MeasuredMemory.EqualsTheSimulatedWithAFrozenPrefix
    exec_threads_tests/MeasuredMemory.OfRecomputingStagesIsTheirInputsAndOneStash
    exec_threads_tests/MeasuredMemory.ReturnsToWhatTheStepBeganWith
    exec_threads_tests/PartlyCachedRun.HasTheSameBitsWhereStagesRecomputeOrDevicesShareTheFirst
    exec_threads_tests/PartlyCachedRun.HasTheSameBitsWithAShortLastBatch
    exec_threads_tests/PartlyCachedRun.OfEveryModelHasTheBitsOfOneWithoutACache
    exec_threads_tests/SharedStages.EqualOneDeviceBitForBit)
elseif(sanitizer)
  set(unsanitized
    planner_partition_tests/GraphPartition.IsNeverWorseWithMoreDevicesNorWithLittleToLookAt
    planner_partition_tests/Partition.IsNeverWorseWithMoreDevices
    planner_partition_tests/PublishedOptima.AreNeverWorseWithMoreDevicesAndSayWhyTheOthersIdle
    planner_partition_tests/ReplicatedPartition.IsNeverWorseWithMoreMachines
    planner_reproduce_tests/ReproduceSailor.APlansOwnMeasurementsHaveNoSayInItsPrediction
    planner_reproduce_tests/ReproduceSailor.AnswersTheSameAsAProgramInJsonAndInATable
    planner_search_tests/JointSearch.IsNeverWorseWithMoreDevices
    planner_search_tests/PublishedModel.IsNeverWorseWithMoreDevicesAndSaysWhichIdle
    planner_search_tests/Search.IsNeverWorseWithMoreDevices)
endif()
